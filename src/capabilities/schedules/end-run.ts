import pLimit from 'p-limit';
import { nextOf, walkPages } from '../../base/pages.ts';
import { summaries } from '../../base/wording.ts';
import { addressesFor } from '../../domain/job.ts';
import { endedStatuses } from '../../domain/load.ts';
import type { DueTask } from '../../domain/task.ts';
import { type Export, readExports } from '../../export/store.ts';
import { type Load, readLoads, readShown } from '../../load/read-store.ts';
import { type Database, inTransaction } from '../../postgres/database.ts';
import { deleteTasks } from '../../tasks/store.ts';
import { notifyQueue } from '../../tasks/task-kind.ts';
import type { ScheduleContext } from './context.ts';
import { renderScheduleRun } from './render-run.ts';
import { type RunItem, readRunItems } from './run-item-store.ts';
import { endRun, type RunEnd, readRuns, readRunsToEnd, resumeRun, type ScheduleRun } from './run-store.ts';
import { moveCursor, remember } from './schedule-store.ts';
import { notifiedEnds, type RunDefinition } from './schema.ts';

const usualPage = 200;
/** Maximum number of jobs read at the same time, so that database connections remain free. */
const jobsAtATime = 4;

/**
 * Ends the runs whose jobs have ended. Each run ends in one transaction with its results. A run
 * that cannot be ended does not delay other runs.
 * @throws the first error, after all runs
 */
export async function endWaitingRuns(context: ScheduleContext, runsPerPage = usualPage): Promise<void> {
  const errors: unknown[] = [];
  const read = async (after: number) => {
    const runs = await readRunsToEnd(context.db, after, runsPerPage);
    return { runs, next: nextOf(runs, runs.length === runsPerPage, ({ runId }) => runId) };
  };
  for await (const { runs } of walkPages(0, read)) {
    for (const run of runs) await endWaitingRun(context, run).catch((error: unknown) => errors.push(error));
  }
  if (errors.length > 0) throw errors[0];
}

async function endWaitingRun(context: ScheduleContext, run: ScheduleRun): Promise<void> {
  const items = await readRunItems(context.db, run.runId);
  const ends = await readEnds(context, run, items);
  if (ends.some((end) => end === null)) return;
  const { export: exported } = run.definition as RunDefinition;
  const itemEnds = ends.filter((each) => each !== null);
  const end = sumUp(itemEnds);
  const isExported = exported !== undefined && end.status === 'completed';
  if (isExported && exported.to_dir !== undefined && run.deliveredTo === null) {
    await resumeRun(context.db, run.runId);
    return;
  }
  const isEnded = await endRunAndNotify(context, run.runId, end, 'waiting', async (db) => {
    for (const { item, problem } of itemEnds) {
      if (problem !== null || item.version === null) continue;
      await remember(db, run.environmentId, run.name, item.item, item.version);
    }
    if (isExported && exported.range === 'since_last_success') await moveCursor(db, run.runId);
  });
  if (!isEnded) return;
  const fields = { schedule: run.name, due_at: run.dueAt, status: end.status, code: end.code };
  context.log[end.status === 'failed' ? 'warn' : 'info'](fields, end.reason ?? 'run of a schedule ended');
}

interface ItemEnd {
  readonly item: RunItem;
  readonly problem: { readonly code: string; readonly message: string } | null;
  readonly rejects: number;
}

/** `null` for an item whose job has not ended. */
async function readEnds(
  context: ScheduleContext,
  { environmentId, definition }: ScheduleRun,
  items: readonly RunItem[],
): Promise<(ItemEnd | null)[]> {
  const ids = items.flatMap(({ jobId }) => jobId ?? []);
  const isExport = (definition as RunDefinition).export !== undefined;
  const jobs = isExport
    ? await readExports(context.db, environmentId, ids)
    : await readLoads(context, environmentId, ids);
  const byId = new Map(jobs.map((job) => [job.jobId, job]));
  const atATime = pLimit(jobsAtATime);
  return Promise.all(
    items.map((item) => atATime(() => readEnd(context, environmentId, item, byId.get(item.jobId ?? '')))),
  );
}

async function readEnd(
  context: ScheduleContext,
  environmentId: number,
  item: RunItem,
  job: Load | Export | undefined,
): Promise<ItemEnd | null> {
  if (item.jobId === null) return { item, problem: item.error, rejects: 0 };
  if (job === undefined) return { item, problem: gone, rejects: 0 };
  if (!(endedStatuses as readonly string[]).includes(job.status)) return null;
  const shown = 'tally' in job ? await readShown(context, environmentId, job) : null;
  if (shown?.isOpen === true) return null;
  const rejects = 'tally' in job && item.isNew ? job.tally.rejected + Number(shown?.isPartial) : 0;
  if (job.status === 'completed') return { item, problem: null, rejects };
  const { code, message } = job.failure ?? cancelled;
  const remarks = summaries(shown?.fields ?? {}).map(([, summary]) => `; ${summary}`);
  return { item, problem: { code, message: message + remarks.join('') }, rejects: 0 };
}

const cancelled = { code: 'job_cancelled', message: 'The job was cancelled' };
const gone = { code: 'job_gone', message: 'The record of the job is gone' };

function sumUp(ends: readonly ItemEnd[]): RunEnd {
  const failed = ends.filter(({ problem }) => problem !== null);
  const [first] = failed;
  if (first?.problem != null) {
    const { code, message } = first.problem;
    const of = ends.length === 1 ? '' : `${failed.length} of ${ends.length} failed; ${first.item.item}: `;
    return { status: 'failed', code, reason: `${of}${message}` };
  }
  const isNew = ends.some(({ item }) => item.isNew);
  if (!isNew) return { status: 'unchanged', code: null, reason: null };
  const hasRejects = ends.some(({ rejects }) => rejects > 0);
  return { status: hasRejects ? 'completed_with_rejects' : 'completed', code: null, reason: null };
}

/**
 * Ends a run. Returns false unless the state of the run is `from`. Calls `inSameTransaction` and
 * reports the end in the same transaction.
 */
export async function endRunAndNotify(
  context: Pick<ScheduleContext, 'pool' | 'log' | 'queue' | 'baseUrl' | 'jobs'>,
  runId: number,
  end: RunEnd,
  from: Parameters<typeof endRun>[3],
  inSameTransaction?: (db: Database) => Promise<void>,
): Promise<boolean> {
  const tasks = await inTransaction(context.pool, async ({ db }) => {
    if (!(await endRun(db, runId, end, from))) return null;
    const due = await recordRunEnd(context, db, runId);
    await inSameTransaction?.(db);
    await deleteTasks(db, ['run'], runId);
    return due;
  });
  if (tasks !== null) await notifyQueue(context, tasks);
  return tasks !== null;
}

async function recordRunEnd(
  { baseUrl, jobs }: Pick<ScheduleContext, 'baseUrl' | 'jobs'>,
  db: Database,
  runId: number,
): Promise<readonly DueTask[]> {
  const [run] = await readRuns(db, { runId }, 1);
  const outcome = notifiedEnds.find((each) => each === run?.status);
  if (run === undefined || outcome === undefined) return [];
  return jobs.ended(db, {
    type: `schedule.${outcome}`,
    environmentId: run.environmentId,
    jobId: null,
    emails: addressesFor((run.definition as RunDefinition).notify ?? null, outcome),
    describe: () => renderScheduleRun(db, run, baseUrl),
  });
}
