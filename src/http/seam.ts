import type { Tag } from './api-document.ts';
import type { Route } from './route.ts';

/** By chapter of the API document, after the core's routes. */
export type TaggedRoutes = Readonly<Partial<Record<Tag, readonly Route[]>>>;
