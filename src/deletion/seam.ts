import type pg from 'pg';
import type { Entity } from '../domain/entity.ts';
import type { TaskClaim } from '../domain/task.ts';
import type { LoadContext } from '../load/context.ts';
import type { Database } from '../postgres/database.ts';

export interface DeletionSeam {
  /** Enables `begin`. */
  readonly option?: DeletionOption;
  /** Called before an attempt removes anything. The ids are in the table `deletion_ids`. */
  begin?(context: BeginContext, claim: TaskClaim, signal: AbortSignal): Promise<void>;
  /**
   * Removes the ids from files of events. Each attempt calls this function before it removes rows
   * from the database, and the returned function afterwards.
   */
  eraseFiles?(attempt: Attempt): Promise<() => Promise<void>>;
  /** Called in the transaction that marks a deletion as failed. */
  failed?(db: Database, environmentId: number): Promise<void>;
  /** Time before which events may exist only in files. `null` if there are no such files. */
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

export interface DeletionOption {
  /** Name in the request body, in the job record and on the command line. */
  readonly name: string;
  readonly entity: Entity;
  /** Description in the schema of the request body. */
  readonly request: string;
  /** Description in the schema of the job record. */
  readonly record: string;
  /** Description in the help of the command. */
  readonly flag: string;
  /** Last part of the question that the command asks before it requests the deletion. */
  readonly question: string;
}

/** Maps an option's name to true if the option was set. */
export type DeletionOptions = Readonly<Record<string, boolean>>;

export interface Attempt {
  readonly context: DeletionContext;
  readonly deletion: { readonly deletionId: number; readonly environmentId: number; readonly entity: Entity };
  /**
   * Runs `work` and adds its counts to the deletion, in one transaction.
   * @throws ConflictError if another worker owns the task, or the reason of an aborted signal
   */
  step<T extends DeletionStep>(work: (db: Database) => Promise<T>): Promise<T>;
  /** For long reads. */
  throwIfAborted(): void;
}

export interface DeletionStep {
  readonly deleted?: number;
  readonly notFound?: number;
  readonly events?: number;
  readonly rejects?: number;
  readonly files?: number;
  readonly exports?: number;
}
