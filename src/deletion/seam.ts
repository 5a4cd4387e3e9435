import type pg from 'pg';
import type { Entity } from '../domain/entity.ts';
import type { TaskClaim } from '../domain/task.ts';
import type { LoadContext } from '../load/context.ts';
import type { Database } from '../postgres/database.ts';

/** A capability that deletions can ask for. */
export interface DeletionSeam {
  readonly option: DeletionOption;
  /**
   * Is called before anything is removed, if the option was given: at least once, again if the deletion is taken over.
   * The ids are in `deletion_ids`.
   */
  begin(context: BeginContext, claim: TaskClaim, signal: AbortSignal): Promise<void>;
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

/** A flag that a deletion may have. */
export interface DeletionOption {
  /** In the body of the request and in the job; `--name` on the command line. */
  readonly name: string;
  /** What such a deletion deletes. */
  readonly entity: Entity;
  /** What it does: for the body, for the job, for the command line, and behind the question before the deletion. */
  readonly request: string;
  readonly record: string;
  readonly flag: string;
  readonly question: string;
}

/** Each option, whether it was given. */
export type DeletionOptions = Readonly<Record<string, boolean>>;
