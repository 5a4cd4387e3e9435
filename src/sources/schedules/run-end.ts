import { MAX_TOLD_ITEMS } from '../../domain/limits.ts';
import { addressesFor } from '../../domain/notification.ts';
import type { Tally } from '../../domain/tally.ts';
import { exportUrl } from '../../export/render-export.ts';
import { readLoads } from '../../load/inspect-load.ts';
import { loadUrl } from '../../load/render-load.ts';
import { recordEnd, ringForDeliveries } from '../../notifications/record-end.ts';
import type { Database } from '../../postgres/database.ts';
import type { DueDelivery } from '../../postgres/stores/deliveries.ts';
import {
  type RunItem,
  readRunItems,
  readRuns,
  type ScheduleRun,
} from '../../postgres/stores/schedule-run-items.ts';
import { endRun, type RunEnd } from '../../postgres/stores/schedule-runs.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import type { ScheduleContext } from './context.ts';
import { notifiedEnds, type RunDefinition } from './schedule.ts';

/**
 * Ends a run that is in one of the states; false if it is in none. Who is to be told of it, and what `alongside` writes,
 * commit with the end.
 */
export async function endRunAndTell(
  context: ScheduleContext,
  runId: number,
  end: RunEnd,
  from: Parameters<typeof endRun>[3],
  alongside?: (db: Database) => Promise<void>,
): Promise<boolean> {
  const due = await inTransaction(context.pool, async ({ db }) => {
    if (!(await endRun(db, runId, end, from))) return null;
    const told = await recordRunEnd(context, db, runId);
    await alongside?.(db);
    return told;
  });
  if (due !== null) await ringForDeliveries(context, due);
  return due !== null;
}

/** Writes the event of a run's end; call it in the transaction that ends it. See `recordEnd`. */
async function recordRunEnd(
  { baseUrl }: Pick<ScheduleContext, 'baseUrl'>,
  db: Database,
  runId: number,
): Promise<DueDelivery[]> {
  const [run] = await readRuns(db, { runId }, 1);
  const outcome = notifiedEnds.find((each) => each === run?.status);
  if (run === undefined || outcome === undefined) return [];
  return recordEnd(db, {
    kind: 'schedule',
    environmentId: run.environmentId,
    jobId: null,
    outcome,
    emails: addressesFor(run.notify, outcome),
    describe: async () => describeRun(db, run, await readRunItems(db, runId), baseUrl),
  });
}

/** The run as the history has it, with links to its jobs and, of loads, what they counted together. */
async function describeRun(
  db: Database,
  run: ScheduleRun,
  items: readonly RunItem[],
  baseUrl: string,
): Promise<object> {
  const isLoad = (run.definition as RunDefinition).work.kind === 'load';
  const linkOf = isLoad ? loadUrl : exportUrl;
  const rendered = renderRun(run, items.slice(0, MAX_TOLD_ITEMS));
  return {
    ...rendered,
    item_count: items.length,
    items: rendered.items.map((item) => ({
      ...item,
      links: item.job_id === null ? null : linkOf(baseUrl, item.job_id),
    })),
    counts: isLoad ? await countTogether(db, run.environmentId, items) : null,
  };
}

/** A load that the run did not make, since the bytes had been loaded before, counts for nothing. */
async function countTogether(db: Database, environmentId: number, items: readonly RunItem[]): Promise<Tally> {
  const made = items.flatMap(({ jobId, isNew }) => (jobId !== null && isNew ? jobId : []));
  const tallies = (await readLoads({ db }, environmentId, made)).map(({ tally }) => tally);
  const sum = (count: keyof Tally): number => tallies.reduce((total, tally) => total + tally[count], 0);
  return {
    read: sum('read'),
    inserted: sum('inserted'),
    updated: sum('updated'),
    unchanged: sum('unchanged'),
    superseded: sum('superseded'),
    rejected: sum('rejected'),
  };
}

/** A run as `--json` and notifications have it. Times are ISO 8601, UTC, with milliseconds. */
export function renderRun(run: ScheduleRun, items: readonly RunItem[]) {
  return {
    schedule: run.name,
    environment: run.environment,
    due_at: run.dueAt.toISOString(),
    status: run.status,
    cause: run.cause,
    missed: run.missed,
    attempts: run.attempts,
    started_at: run.startedAt?.toISOString() ?? null,
    ended_at: run.endedAt?.toISOString() ?? null,
    range_from: run.rangeFrom?.toISOString() ?? null,
    range_to: run.rangeTo?.toISOString() ?? null,
    delivered_to: run.deliveredTo,
    error_code: run.code,
    message: run.reason,
    last_error: run.lastError,
    items: items.map(({ item, jobId, isNew, error }) => ({
      item,
      job_id: jobId,
      is_new: isNew,
      error_code: error?.code ?? null,
      message: error?.message ?? null,
    })),
  };
}
