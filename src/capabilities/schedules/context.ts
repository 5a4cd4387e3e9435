import { join } from 'node:path';
import type { Config } from '../../base/config.ts';
import { MIN_UPLOAD_BYTES_PER_SECOND } from '../../base/limits.ts';
import type { TaskClaim, TaskFailure } from '../../domain/task.ts';
import type { ExportContext } from '../../export/context.ts';
import type { LoadContext } from '../../load/context.ts';
import type { ReceiveLimits } from '../../load/receive/intake.ts';
import { localLimits } from '../../load/receive/receive.ts';
import { inTransaction } from '../../postgres/database.ts';
import { holdTask } from '../../tasks/store.ts';
import { insertRunItem } from './run-item-store.ts';
import type { RunWork } from './run-store.ts';
import type { Variables } from './source.ts';

export interface ScheduleContext extends LoadContext, ExportContext {
  readonly schedules: ScheduleSettings;
}

export interface ScheduleSettings {
  readonly variables: Variables;
  /** Each as `environment:NAME`. */
  readonly granted: readonly string[];
  /** Absolute paths. Each root contains a folder for each environment. */
  readonly localRoots: readonly string[];
  /** Folders for copies of exports, structured like `localRoots`. */
  readonly exportRoots: readonly string[];
  readonly allowPrivate: boolean;
  /** The trusted certificate authorities, as PEM. If `null`, Node's own authorities are trusted. */
  readonly authorities: string | null;
  readonly sourceCommands: string | null;
  readonly limits: ReceiveLimits;
  readonly chunkBytes: number;
  /** Clock for due times. Leases use the clock of the database. */
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
      minBytesPerSecond: MIN_UPLOAD_BYTES_PER_SECOND,
      stallMs: config.uploadStallMs,
    },
    chunkBytes: config.chunkBytes,
    now: () => new Date(),
  };
}

export function grantOf(environment: string, variable: string): string {
  return `${environment}:${variable}`;
}

export interface SourceAccess extends ScheduleSettings {
  readonly environment: string;
  /** A command receives the variables that SOURCE_COMMANDS lists. */
  readonly workerVariables: Variables;
}

export function confine(settings: ScheduleSettings, environment: string): SourceAccess {
  const { variables, granted, localRoots, exportRoots } = settings;
  const grantedVariables = Object.entries(variables).filter(([name]) =>
    granted.includes(grantOf(environment, name)),
  );
  const inside = (roots: readonly string[]) => roots.map((root) => join(root, environment));
  return {
    ...settings,
    environment,
    workerVariables: variables,
    variables: Object.fromEntries(grantedVariables),
    localRoots: inside(localRoots),
    exportRoots: inside(exportRoots),
  };
}

/** Every write checks whether the attempt still owns the task. */
export interface RunAttempt extends RunWork {
  readonly claim: TaskClaim;
}

export async function keepRefusal(
  { pool }: ScheduleContext,
  run: RunAttempt,
  item: string,
  error: TaskFailure,
): Promise<void> {
  await inTransaction(pool, async ({ db }) => {
    await holdTask(db, run.claim);
    await insertRunItem(db, run.runId, { item, version: null, jobId: null, isNew: false, error });
  });
}
