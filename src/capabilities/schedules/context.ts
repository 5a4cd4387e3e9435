import { join } from 'node:path';
import type { Config } from '../../base/config.ts';
import { ConflictError } from '../../base/errors.ts';
import { MIN_UPLOAD_BYTES_PER_SECOND } from '../../base/limits.ts';
import type { TaskClaim, TaskFailure } from '../../domain/task.ts';
import type { ExportContext } from '../../export/context.ts';
import type { LoadContext } from '../../load/context.ts';
import type { ReceiveLimits } from '../../load/receive/intake.ts';
import { localLimits } from '../../load/receive/receive.ts';
import { type Database, inTransaction } from '../../postgres/database.ts';
import { renewTask } from '../../tasks/store.ts';
import { insertRunItem, type RunWork } from './run-store.ts';
import type { Variables } from './source.ts';

/** A system, and the settings of the process. */
export interface ScheduleContext extends LoadContext, ExportContext {
  readonly schedules: ScheduleSettings;
}

export interface ScheduleSettings {
  readonly variables: Variables;
  /** The variables that schedules may name, each as `environment:NAME`. */
  readonly granted: readonly string[];
  /** Folders that hold the folders of environments from which files are loaded; absolute. */
  readonly localRoots: readonly string[];
  /** Folders that hold the folders of environments to which exports are copied; absolute. */
  readonly exportRoots: readonly string[];
  readonly allowPrivate: boolean;
  /** PEM of authorities that https servers are trusted by; null: those that Node trusts. */
  readonly authorities: string | null;
  /** The file with the commands. */
  readonly sourceCommands: string | null;
  readonly limits: ReceiveLimits;
  readonly chunkBytes: number;
  /** The clock for due times. Leases use the database's clock. */
  readonly now: () => Date;
}

export function scheduleSettings(config: Config, variables: Variables): ScheduleSettings {
  return {
    variables,
    granted: config.schedulesVariables,
    localRoots: config.schedulesLocalRoots,
    exportRoots: config.schedulesExportRoots,
    allowPrivate: config.schedulesAllowPrivate,
    sourceCommands: config.sourceCommands,
    authorities: null,
    limits: {
      ...localLimits(config),
      ...{ minBytesPerSecond: MIN_UPLOAD_BYTES_PER_SECOND, stallMs: config.uploadStallMs },
    },
    chunkBytes: config.chunkBytes,
    now: () => new Date(),
  };
}

/** Writes a grant of SCHEDULES_VARIABLES. */
export function grantOf(environment: string, variable: string): string {
  return `${environment}:${variable}`;
}

/** The settings within which the schedules of an environment run. */
export interface SourceAccess extends ScheduleSettings {
  readonly environment: string;
  /** The variables of the worker, which commands may get. */
  readonly workerVariables: Variables;
}

/** Returns of each folder the one that has the environment's name, and the granted variables. */
export function confine(settings: ScheduleSettings, environment: string): SourceAccess {
  const { variables, granted, localRoots, exportRoots } = settings;
  const some = Object.entries(variables).filter(([name]) => granted.includes(grantOf(environment, name)));
  const inside = (roots: readonly string[]) => roots.map((root) => join(root, environment));
  return {
    ...settings,
    environment,
    workerVariables: variables,
    variables: Object.fromEntries(some),
    localRoots: inside(localRoots),
    exportRoots: inside(exportRoots),
  };
}

/** An attempt at a run: what is to be done, and the task that fences every write. */
export interface RunAttempt extends RunWork {
  readonly claim: TaskClaim;
}

export const notOurs = 'another worker has the run';

/** Holds the run, if its task is still the attempt's own, until the transaction ends. @throws ConflictError */
export async function holdRun(db: Database, { claim }: RunAttempt): Promise<void> {
  if (!(await renewTask(db, claim))) throw new ConflictError(notOurs);
}

export async function keepRefusal(
  { pool }: ScheduleContext,
  run: RunAttempt,
  item: string,
  error: TaskFailure,
): Promise<void> {
  await inTransaction(pool, async ({ db }) => {
    await holdRun(db, run);
    await insertRunItem(db, run.runId, { item, version: null, jobId: null, isNew: false, error });
  });
}
