import { MAX_TOLD_ITEMS } from '../domain/limits.ts';
import { addressesFor } from '../domain/notification.ts';
import type { Tally } from '../domain/tally.ts';
import { exportUrl } from '../export/render-export.ts';
import { readLoads } from '../load/inspect-load.ts';
import { loadUrl } from '../load/render-load.ts';
import { recordEnd } from '../notifications/record-end.ts';
import type { Database } from '../postgres/database.ts';
import type { DueDelivery } from '../postgres/stores/deliveries.ts';
import {
  type RunItem,
  readRunItems,
  readRuns,
  type ScheduleRun,
} from '../postgres/stores/schedule-run-items.ts';
import type { ScheduleContext } from './context.ts';
import { renderRun } from './render-run.ts';
import { notifiedEnds, type RunDefinition } from './schedule.ts';

/** Writes the event of a run's end; call it in the transaction that ends it. See `recordEnd`. */
export async function recordRunEnd(
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
