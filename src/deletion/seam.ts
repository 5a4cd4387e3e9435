import type pg from 'pg';
import type { Entity } from '../domain/entity.ts';
import type { TaskClaim } from '../domain/task.ts';
import type { LoadContext } from '../load/context.ts';
import type { Database } from '../postgres/database.ts';

/** Hooks of a capability in deletions. */
export interface DeletionSeam {
  /** Option that enables `begin`. */
  readonly option?: DeletionOption;
  /**
   * Called before anything is removed, if the option is set, and at each attempt. The ids are in
   * `deletion_ids`.
   */
  begin?(context: BeginContext, claim: TaskClaim, signal: AbortSignal): Promise<void>;
  /**
   * Erases the ids from files with events before rows are removed. Returns a second pass for
   * afterwards. Each attempt calls both.
   */
  eraseFiles?(attempt: Attempt): Promise<() => Promise<void>>;
  /** Called in the transaction that fails a deletion. */
  failed?(db: Database, environmentId: number): Promise<void>;
  /** Returns the time before which events may be only in files. `null` if none are. */
  findMovedUntil?(db: Database, environmentId: number): Promise<string | null>;
}

interface BeginContext {
  readonly pool: pg.Pool;
  readonly db: Database;
}

export interface DeletionContext extends LoadContext {
  readonly deletions: readonly DeletionSeam[];
}

declare module '../context.ts' {
  interface System extends DeletionContext {}
}

/** A flag of deletions. */
export interface DeletionOption {
  /** Name in the body and in the job. `--name` on the command line. */
  readonly name: string;
  readonly entity: Entity;
  /** Description for the body. */
  readonly request: string;
  /** Description for the job. */
  readonly record: string;
  /** Description for the command line. */
  readonly flag: string;
  /** End of the question before a deletion. */
  readonly question: string;
}

/** Options by name. True if set. */
export type DeletionOptions = Readonly<Record<string, boolean>>;

/** An attempt, which commits nothing once its task is lost. */
export interface Attempt {
  readonly context: DeletionContext;
  readonly deletion: { readonly deletionId: number; readonly environmentId: number; readonly entity: Entity };
  /**
   * Runs `work` in a transaction that also adds its counts, if the task is still owned.
   * @throws ConflictError if it is not, or the reason of an aborted signal
   */
  step<T extends DeletionStep>(work: (db: Database) => Promise<T>): Promise<T>;
  /** Called between long reads. @throws the reason of an aborted signal */
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
