import { ConflictError } from '../domain/errors.ts';
import { HEARTBEAT_MS } from '../domain/limits.ts';
import { keepAlive } from '../load/keep-alive.ts';
import type { Database } from '../postgres/database.ts';
import { type DeletionClaim, type DeletionStep, noteStep } from '../postgres/ledger/deletions.ts';
import { inTransaction } from '../postgres/transaction.ts';
import type { DeletionContext } from './context.ts';

/** An attempt under way: it keeps its lease, and nothing of it is committed once that is lost. */
export interface Attempt {
  readonly context: DeletionContext;
  readonly claim: DeletionClaim;
  /**
   * One transaction: what `work` does and what it says of it commit together, if the deletion is still ours.
   * @throws ConflictError if it is not; Interrupted if the worker is to stop.
   */
  step<T extends DeletionStep>(work: (db: Database) => Promise<T>): Promise<T>;
  /** Between reads that take long. @throws Interrupted if the worker is to stop. */
  goOn(): void;
  end(): void;
}

export function startAttempt(context: DeletionContext, claim: DeletionClaim, stopping: AbortSignal): Attempt {
  const heartbeat = keepAlive(HEARTBEAT_MS, () => noteStep(context.db, claim));
  return {
    context,
    claim,
    async step(work) {
      stopping.throwIfAborted();
      return inTransaction(context.pool, async ({ db }) => {
        const done = await work(db);
        if (await noteStep(db, claim, done)) return done;
        throw new ConflictError('another worker has the deletion');
      });
    },
    goOn: () => stopping.throwIfAborted(),
    end: () => heartbeat.stop(),
  };
}
