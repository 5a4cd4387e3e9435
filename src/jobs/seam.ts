import type pg from 'pg';
import type { Logger } from 'pino';
import type { Config } from '../base/config.ts';
import type { Poller } from '../base/timers.ts';
import type { System } from '../context.ts';
import type { TaskKindName } from '../domain/task.ts';
import type { FileStore } from '../files/file-store.ts';
import type { Database } from '../postgres/database.ts';
import type { Retirement } from '../postgres/retirements.ts';
import type { TaskKind } from '../tasks/task-kind.ts';

export interface RetentionContext {
  readonly pool: pg.Pool;
  readonly db: Database;
  readonly files: FileStore;
  readonly log: Logger;
  readonly config: Config;
  readonly archive: ArchiveSeam | null;
}

declare module '../context.ts' {
  interface System {
    readonly archive: ArchiveSeam | null;
  }
}

export interface ArchiveSeam {
  readonly label: string;
  isOn(config: Config): boolean;
  /** Called before events are removed, by only one process at a time. */
  maintain(context: RetentionContext): Promise<void>;
  /**
   * Archives the events of a month. After this call, the table that contains these events is
   * dropped.
   */
  archive(context: RetentionContext, retirement: Retirement): Promise<void>;
  /** Removes unreferenced files. Returns their number. */
  sweep(context: Pick<RetentionContext, 'db' | 'files'>): Promise<number>;
}

export interface WorkSeam {
  open(system: System, worker: WorkerProcess): Work;
}

export interface WorkerProcess {
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** False if the process runs a single command or task. */
  readonly isOfService: boolean;
}

/**
 * Workers run tasks of this kind without the queue, so that they do not occupy a slot for chunks.
 */
export type RunnerKind<Context> = TaskKind<Context> & { readonly maxOutsideQueue: number };

export interface Work {
  readonly kinds?: readonly RunnerKind<System>[];
  /** Call `wake` when a task of one of `kinds` is due. */
  start?(wake: (kind: TaskKindName) => void): Poller | null;
  /** Called after all tasks have ended or been released. */
  close?(): void;
}

export function withContext<Context>(kind: RunnerKind<Context>, context: Context): RunnerKind<System> {
  const { reconcile } = kind;
  return {
    ...kind,
    run: (_, claim, signal) => kind.run(context, claim, signal),
    fail: (_, task, failure) => kind.fail(context, task, failure),
    reconcile: async () => reconcile?.(context),
  };
}
