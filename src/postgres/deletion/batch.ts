/** Ids that are deleted together. */
export interface DeletionBatch {
  readonly deletionId: number;
  readonly environmentId: number;
  readonly ids: readonly string[];
}

/** How many ids were settled, and how. */
export interface Settled {
  readonly deleted: number;
  readonly notFound: number;
}
