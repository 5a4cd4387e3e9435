import { createHash } from 'node:crypto';
import { explainProblem, InputError } from '../../base/errors.ts';
import { growing } from '../../base/retry.ts';
import { toFileOptions } from '../../domain/load-options.ts';
import { yamlKeys } from '../../domain/option-table.ts';
import type { TaskClaim, TaskFailure } from '../../domain/task.ts';
import { discardReceived } from '../../load/received.ts';
import { acceptSource, receiveSource } from '../../load/take-file.ts';
import { inTransaction } from '../../postgres/database.ts';
import { deleteTasks, endTask, holdTask, releaseTask } from '../../tasks/store.ts';
import { confine, keepRefusal, type RunAttempt, type ScheduleContext, type SourceAccess } from './context.ts';
import { endRunAndNotify } from './end-run.ts';
import { runExportRun } from './run-export.ts';
import { dropRefusedItems, insertRunItem, readRunItems } from './run-item-store.ts';
import { beginRun, markWaiting } from './run-store.ts';
import { readMemory } from './schedule-store.ts';
import {
  type LoadDefinition,
  type RunDefinition,
  type SourceDefinition,
  type SourceKind,
  sourceKinds,
} from './schema.ts';
import {
  type IsDone,
  MAX_RUN_ITEMS,
  type OpenItem,
  openLocalFiles,
  type Source,
  SourceFailure,
  type SourceItem,
} from './source.ts';
import { type Dates, openCommand } from './source-command.ts';
import { openHttp, unexpectedStatus } from './source-http.ts';

export const MAX_RUN_FAILURES = 8;

/** All pauses together take about half an hour. */
export const runPauseMs = growing(15_000);

/**
 * Starts the jobs of a run, and returns when they have been accepted. The run then waits for the
 * jobs, without a task. After a transient error of the source, the task is released. Any other
 * error of the source fails the run.
 */
export async function doRun(context: ScheduleContext, claim: TaskClaim, signal: AbortSignal): Promise<void> {
  const row = await beginRun(context.db, claim.subjectId);
  if (row === null) {
    await endTask(context.db, claim);
    return;
  }
  const run = { ...row, claim };
  await inTransaction(context.pool, async ({ db }) => {
    await holdTask(db, run.claim);
    await dropRefusedItems(db, run.runId);
  });
  try {
    const { load, export: exported = {}, timezone, environment } = run.definition as RunDefinition;
    const schedules = confine(context.schedules, environment);
    const confined = { ...context, schedules };
    if (load === undefined) await runExportRun(confined, run, exported, timezone, signal);
    else {
      const source = await openSource(load, schedules, datesOf(run.dueAt, timezone));
      await runLoad(confined, run, load, source, signal);
    }
  } catch (error) {
    const isOfSource = error instanceof InputError || error instanceof SourceFailure;
    if (!isOfSource || signal.aborted) throw error;
    const isFinal = error instanceof InputError || !error.isTransient;
    if (!isFinal && claim.failures + 1 < MAX_RUN_FAILURES) return tryLater(context, run, error);
    const code = error instanceof SourceFailure ? error.code : error.problems[0].code;
    await keepRefusal(context, run, sourceItem, { code, message: error.message });
  }
  await inTransaction(context.pool, async ({ db }) => {
    await markWaiting(db, run.runId);
    await endTask(db, claim);
  });
}

async function tryLater({ db, log }: ScheduleContext, run: RunAttempt, error: SourceFailure): Promise<void> {
  const { claim } = run;
  const fields = { schedule: run.name, due_at: run.dueAt, attempt: claim.attempt };
  log.warn({ ...fields, err: error }, 'a source cannot be read now; it will be tried again');
  const pauseMs = Math.max(runPauseMs(claim.failures + 1), error.retryAfterMs);
  await releaseTask(db, claim, { message: error.message, pauseMs, counts: true });
}

/** Name of the item of a run whose source could not be read. */
const sourceItem = 'source';

/**
 * If the worker was lost, the run fails immediately. Otherwise, the run fails after its jobs have
 * ended.
 */
export async function failRun(
  context: Pick<ScheduleContext, 'pool' | 'log' | 'queue' | 'baseUrl' | 'jobs'>,
  runId: number,
  failure: TaskFailure,
): Promise<void> {
  const { code, message } = failure;
  if (code === 'worker_lost') {
    await endRunAndNotify(context, runId, { status: 'failed', code, reason: message }, 'queued');
    return;
  }
  await inTransaction(context.pool, async ({ db }) => {
    const refused = { item: sourceItem, version: null, jobId: null, isNew: false, error: failure };
    await insertRunItem(db, runId, refused);
    await markWaiting(db, runId);
    await deleteTasks(db, ['run'], runId);
  });
}

const openers: {
  readonly [K in SourceKind]: (
    definition: SourceDefinition<K>,
    access: SourceAccess,
    dates: Dates,
  ) => Source | Promise<Source>;
} = {
  files: (definition, { localRoots }) => openLocalFiles(definition, localRoots),
  http: openHttp,
  command: openCommand,
  s3: async (definition, access) => (await import('./source-s3.ts')).openS3(definition, access),
};

const dayMs = 86_400_000;

function datesOf(dueAt: Date, timeZone: string): Dates {
  const today = new Intl.DateTimeFormat('sv-SE', { timeZone }).format(dueAt);
  return { today, yesterday: new Date(Date.parse(today) - dayMs).toISOString().slice(0, 10) };
}

/** @throws SourceFailure */
async function openSource(load: LoadDefinition, access: SourceAccess, dates: Dates): Promise<Source> {
  const kind = sourceKinds.find((each) => load[each] !== undefined) ?? 'files';
  const open = openers[kind] as (definition: unknown, ...more: unknown[]) => Source | Promise<Source>;
  return open(load[kind], access, dates);
}

/** @throws SourceFailure */
async function runLoad(
  context: ScheduleContext,
  run: RunAttempt,
  load: LoadDefinition,
  source: Source,
  signal: AbortSignal,
): Promise<void> {
  try {
    const memory = await readMemory(context.db, run);
    const items = await readRunItems(context.db, run.runId);
    const keys = new Set(items.map(({ item }) => item));
    const isDone: IsDone = (key, version) =>
      keys.has(shortKey(key)) || (version !== null && version === memory.get(shortKey(key)));
    let room = MAX_RUN_ITEMS - keys.size;
    for (const item of await source.list(isDone, signal)) {
      if (isDone(item.key, item.version)) continue;
      if (room-- <= 0) {
        context.log.warn({ schedule: run.name, items: MAX_RUN_ITEMS }, 'the next run takes the rest');
        break;
      }
      const key = shortKey(item.key);
      await takeItem(context, run, load, { ...item, key }, memory.get(key) ?? null, signal);
    }
  } finally {
    source.close?.();
  }
}

/** An entry in a PostgreSQL index has at most about 2 700 bytes. */
function shortKey(key: string): string {
  if (Buffer.byteLength(key) <= 1_500) return key;
  return `${key.slice(0, 300)}…${createHash('sha256').update(key).digest('hex')}`;
}

async function takeItem(
  context: ScheduleContext,
  run: RunAttempt,
  load: LoadDefinition,
  item: SourceItem,
  lastVersion: string | null,
  signal: AbortSignal,
): Promise<void> {
  let opened: OpenItem | null = null;
  try {
    const content = await item.open(lastVersion, signal);
    if (content === 'unchanged') return;
    opened = content;
    await loadItem(context, run, load, item, opened, signal);
  } catch (error) {
    if (error instanceof SourceFailure) {
      const isOfItem = opened !== null || error.code === unexpectedStatus;
      if (error.isTransient || !isOfItem || signal.aborted) throw error;
      await keepRefusal(context, run, item.key, error);
      return;
    }
    if (!(error instanceof InputError)) throw error;
    const [problem] = error.problems;
    const { code } = problem;
    if (code === 'empty_file' && opened?.mayBeEmpty === true) return;
    await keepRefusal(context, run, item.key, { code, message: explainProblem(problem, yamlKeys) });
  } finally {
    await opened?.close();
  }
}

async function loadItem(
  context: ScheduleContext,
  run: RunAttempt,
  load: LoadDefinition,
  { key, filename }: Pick<SourceItem, 'key' | 'filename'>,
  opened: OpenItem,
  signal: AbortSignal,
): Promise<void> {
  const { environmentId } = run;
  const { limits, chunkBytes } = context.schedules;
  const options = toFileOptions(context.optionTable, load, load.entity);
  const { stallMs } = opened;
  const itemLimits = stallMs === undefined ? limits : { ...limits, minBytesPerSecond: 0, stallMs };
  const { hints } = opened;
  const file = { environmentId, filename, options, hints, limits: itemLimits, chunkBytes, signal };
  const result = await receiveSource(context, file, opened.bytes);
  const { ref } = result.received;
  try {
    await opened.check?.();
  } catch (error) {
    await discardReceived(context, ref);
    throw error;
  }
  const origin = { kind: 'schedule', name: run.name } as const;
  await acceptSource(context, file, result, origin, async (db, { jobId, created }) => {
    await holdTask(db, run.claim);
    const item = { item: key, version: opened.version, jobId, isNew: created, error: null };
    await insertRunItem(db, run.runId, item);
  });
}
