import type { Entity } from '../domain/entity.ts';
import type { LoadContext } from '../load/context.ts';
import type { Database } from '../postgres/database.ts';
import type { DeletionStep } from '../postgres/stores/deletions.ts';

/** The context of deletions: a part of that of loads, since both share a lane. */
export type DeletionContext = LoadContext;

/** An attempt under way: nothing of it is committed once the task is lost. */
export interface Attempt {
  readonly context: DeletionContext;
  readonly deletion: {
    readonly deletionId: number;
    readonly environmentId: number;
    readonly entity: Entity;
  };
  /**
   * One transaction: what `work` does and what it says of it commit together, if the deletion is still ours.
   * @throws ConflictError if it is not; the reason of the signal once that is aborted.
   */
  step<T extends DeletionStep>(work: (db: Database) => Promise<T>): Promise<T>;
  /** Between reads that take long. @throws the reason of the signal once that is aborted. */
  goOn(): void;
}
