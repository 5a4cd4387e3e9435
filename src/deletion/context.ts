import type { LoadContext } from '../load/context.ts';

/** What deletions work with: a part of what loads do, since both stand in one lane. */
export type DeletionContext = LoadContext;
