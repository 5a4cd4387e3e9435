import type { Tag } from './api-document.ts';
import type { Route } from './route.ts';

/**
 * Routes of a capability, by chapter of the API document. Within each chapter, the core's routes
 * come first.
 */
export type TaggedRoutes = Readonly<Partial<Record<Tag, readonly Route[]>>>;
