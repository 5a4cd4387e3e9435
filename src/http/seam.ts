import type { Tag } from './api-document.ts';
import type { Route } from './route.ts';

/**
 * Routes of a capability, by chapter of the API document. In each chapter, they follow those of the
 * core.
 */
export type TaggedRoutes = Readonly<Partial<Record<Tag, readonly Route[]>>>;
