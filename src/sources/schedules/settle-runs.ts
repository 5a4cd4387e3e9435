import { endedStatuses } from '../../domain/load.ts';
import { readLoads } from '../../load/inspect-load.ts';
import { readExports } from '../../postgres/ledger/read-exports.ts';
import {
  type RunItem,
  readRunItems,
  readRuns,
  type ScheduleRun,
} from '../../postgres/stores/schedule-run-items.ts';
import { type RunEnd, resumeRun } from '../../postgres/stores/schedule-runs.ts';
import { moveExportedUntil, remember } from '../../postgres/stores/schedules.ts';
import type { ScheduleContext } from './context.ts';
import { endRunAndTell } from './run-end.ts';
import type { RunDefinition } from './schedule.ts';

const runsPerRound = 200;

/**
 * Ends the runs whose jobs have ended. What a run learned is remembered in the transaction that ends it. One that cannot be
 * ended now holds up no other: the first error is thrown when all have been looked at.
 */
export async function settleRuns(context: ScheduleContext): Promise<void> {
  const errors: unknown[] = [];
  for (const run of await readRuns(context.db, { status: ['waiting'] }, runsPerRound)) {
    await settleRun(context, run).catch((error: unknown) => errors.push(error));
  }
  if (errors.length > 0) throw errors[0];
}

async function settleRun(context: ScheduleContext, run: ScheduleRun): Promise<void> {
  const items = await readRunItems(context.db, run.runId);
  const ends = await readEnds(context, run, items);
  if (ends.some((end) => end === null)) return;
  const { work } = run.definition as RunDefinition;
  const ended = ends.filter((each) => each !== null);
  const end = sumUp(ended);
  if (
    work.kind === 'export' &&
    end.status === 'completed' &&
    work.toDir !== null &&
    run.deliveredTo === null
  ) {
    await resumeRun(context.db, run.runId);
    return;
  }
  const done = await endRunAndTell(context, run.runId, end, ['waiting'], async (db) => {
    for (const { item, problem } of ended) {
      if (problem !== null || item.version === null) continue;
      await remember(db, run.environmentId, run.name, item.item, item.version);
    }
    if (work.kind === 'export' && end.status === 'completed') {
      await moveExportedUntil(db, run.environmentId, run.name, run.runId);
    }
  });
  if (!done) return;
  const fields = { schedule: run.name, due_at: run.dueAt, status: end.status, code: end.code };
  context.log[end.status === 'failed' ? 'warn' : 'info'](fields, end.reason ?? 'run of a schedule ended');
}

/** How an item ended. */
interface ItemEnd {
  readonly item: RunItem;
  /** Null: its job completed. */
  readonly problem: { readonly code: string; readonly message: string } | null;
  readonly rejects: number;
}

/** Null for those whose job has not ended. */
async function readEnds(
  context: ScheduleContext,
  { environmentId, definition }: ScheduleRun,
  items: readonly RunItem[],
): Promise<(ItemEnd | null)[]> {
  const ids = items.flatMap(({ jobId }) => jobId ?? []);
  const isExport = (definition as RunDefinition).work.kind === 'export';
  const jobs = isExport
    ? (await readExports(context.db, environmentId, ids)).map((each) => ({ ...each, rejects: 0 }))
    : (await readLoads(context, environmentId, ids)).map((each) => ({
        ...each,
        rejects: each.tally.rejected,
      }));
  return items.map((item) => {
    if (item.jobId === null) return { item, problem: item.error, rejects: 0 };
    const job = jobs.find(({ jobId }) => jobId === item.jobId);
    if (job === undefined) return { item, problem: gone, rejects: 0 };
    if (!(endedStatuses as readonly string[]).includes(job.status)) return null;
    if (job.status === 'completed') return { item, problem: null, rejects: item.isNew ? job.rejects : 0 };
    const problem = job.failure ?? { code: 'job_cancelled', message: 'the job was cancelled' };
    return { item, problem, rejects: 0 };
  });
}

const gone = { code: 'job_gone', message: 'there is no record of the job any more' };

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
