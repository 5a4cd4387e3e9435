import type { Tag } from './api-document.ts';
import type { Route } from './route.ts';

/** Routes by chapter of the API document. They follow the core's routes of that chapter. */
export type TaggedRoutes = Readonly<Partial<Record<Tag, readonly Route[]>>>;
