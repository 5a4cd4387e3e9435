import type pg from 'pg';
import type { Entity } from '../domain/entity.ts';
import type { TaskClaim } from '../domain/task.ts';
import type { LoadContext } from '../load/context.ts';
import type { Database } from '../postgres/database.ts';

/** Hooks of a capability in deletions. */
export interface DeletionSeam {
  /** By it deletions ask for `begin`. */
  readonly option?: DeletionOption;
  /**
   * Is called before anything is removed, if the option was given; again if the deletion is taken
   * over. The ids are in `deletion_ids`.
   */
  begin?(context: BeginContext, claim: TaskClaim, signal: AbortSignal): Promise<void>;
  /**
   * Erases the ids from files with events, before rows are removed. Returns what does so again once
   * they are. Both may be called again if the deletion is taken over.
   */
  eraseFiles?(attempt: Attempt): Promise<() => Promise<void>>;
  /** Is called in the transaction that fails a deletion. */
  failed?(db: Database, environmentId: number): Promise<void>;
  /** Returns the time up to which events may be in files only; `null` if none are. */
  findMovedUntil?(db: Database, environmentId: number): Promise<string | null>;
}

interface BeginContext {
  readonly pool: pg.Pool;
  readonly db: Database;
}

/** Everything that deletions work with. */
export interface DeletionContext extends LoadContext {
  /** The hooks of capabilities. */
  readonly deletions: readonly DeletionSeam[];
}

declare module '../context.ts' {
  interface System extends DeletionContext {}
}

/** A flag that a deletion may have. */
export interface DeletionOption {
  /** In the body of the request and in the job; `--name` on the command line. */
  readonly name: string;
  /** The entity that such a deletion deletes. */
  readonly entity: Entity;
  /** Sentences that say what it does: for the body, for the job, for the command line, and behind the question before the deletion. */
  readonly request: string;
  readonly record: string;
  readonly flag: string;
  readonly question: string;
}

/** Each option, whether it was given. */
export type DeletionOptions = Readonly<Record<string, boolean>>;

/** An attempt under way: nothing of it is committed once the task is lost. */
export interface Attempt {
  readonly context: DeletionContext;
  readonly deletion: { readonly deletionId: number; readonly environmentId: number; readonly entity: Entity };
  /**
   * Does `work` in one transaction, which commits together with the counts that it returns if the
   * deletion is still ours.
   * @throws ConflictError if it is not; the reason of the signal once that is aborted.
   */
  step<T extends DeletionStep>(work: (db: Database) => Promise<T>): Promise<T>;
  /** Called between reads that take long. @throws the reason of the signal once that is aborted. */
  goOn(): void;
}

export interface DeletionStep {
  readonly deleted?: number;
  readonly notFound?: number;
  readonly events?: number;
  readonly rejects?: number;
  readonly files?: number;
  readonly exports?: number;
}
