import type { Tag } from './api-document.ts';
import type { Route } from './route.ts';

/** Routes by the chapter of the API document in which they stand, behind those of the core. */
export type TaggedRoutes = Readonly<Partial<Record<Tag, readonly Route[]>>>;
