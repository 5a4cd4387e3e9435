import type pg from 'pg';
import type { Entity } from '../domain/entity.ts';
import type { TaskClaim } from '../domain/task.ts';
import type { LoadContext } from '../load/context.ts';
import type { Database } from '../postgres/database.ts';

/** A capability's hooks into deletions. */
export interface DeletionSeam {
  /** Request option that enables `begin`. */
  readonly option?: DeletionOption;
  /**
   * Called at the start of each attempt if the option is set, before the attempt removes anything.
   * The ids are in the table `deletion_ids`.
   */
  begin?(context: BeginContext, claim: TaskClaim, signal: AbortSignal): Promise<void>;
  /**
   * Erases the ids from files that contain events, before rows are removed. Returns a second pass,
   * which runs after the rows have been removed. Each attempt runs both passes.
   */
  eraseFiles?(attempt: Attempt): Promise<() => Promise<void>>;
  /** Called in the transaction that fails a deletion. */
  failed?(db: Database, environmentId: number): Promise<void>;
  /**
   * Returns the time before which events may exist only in files. `null` if all events are in the
   * database.
   */
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

/** A Boolean option for deletions. */
export interface DeletionOption {
  /** Name in the request body and in the job record. The command-line option is `--name`. */
  readonly name: string;
  readonly entity: Entity;
  /** Description in the schema of the request body. */
  readonly request: string;
  /** Description in the schema of the job record. */
  readonly record: string;
  /** Description in the command-line help. */
  readonly flag: string;
  /** Words that end the confirmation question. */
  readonly question: string;
}

/** Option values by name: true for each option that was set. */
export type DeletionOptions = Readonly<Record<string, boolean>>;

export interface Attempt {
  readonly context: DeletionContext;
  readonly deletion: { readonly deletionId: number; readonly environmentId: number; readonly entity: Entity };
  /**
   * Runs `work` and records its counts in one transaction. Commits only if this attempt still owns
   * the task. @throws ConflictError if the task is lost, or the reason of an aborted signal
   */
  step<T extends DeletionStep>(work: (db: Database) => Promise<T>): Promise<T>;
  /** Call it regularly during long reads. @throws the reason of an aborted signal */
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
