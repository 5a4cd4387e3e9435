import { MAX_COUNTED_REJECTS } from '../../base/limits.ts';
import type { Notify } from '../../domain/job.ts';
import { camel, toFailure } from '../../postgres/columns.ts';
import { type Database, deleteWhere, findValue, prepared, rowsOf } from '../../postgres/database.ts';

/*
 * Items of runs: the files that a run loads and the exports that it requests. An item has a job, or
 * the reason for which it was refused.
 */

export interface RunItem {
  readonly item: string;
  readonly version: string | null;
  /** `null` if the item was refused. The reason is then in `error`. */
  readonly jobId: string | null;
  readonly isNew: boolean;
  readonly error: { readonly code: string; readonly message: string } | null;
}

/**
 * Inserts an item, or replaces it if it was refused before. Must be called in the transaction that
 * accepts the item's job.
 */
export async function insertRunItem(db: Database, runId: number, item: RunItem): Promise<void> {
  const values = {
    version: item.version,
    job_id: item.jobId,
    is_new: item.isNew,
    error_code: item.error?.code ?? null,
    error_message: item.error?.message ?? null,
  };
  await db
    .insertInto('schedule_run_items')
    .values({ run_id: runId, item: item.item, ...values })
    .onConflict((conflict) =>
      conflict.columns(['run_id', 'item']).doUpdateSet(values).where('schedule_run_items.job_id', 'is', null),
    )
    .execute();
}

/** `null` if no run created the job, or if the run notifies nobody. */
export function readNotifyOfJob(db: Database, jobId: string): Promise<Notify | null> {
  return findValue<Notify | null>(prepared(db))`
    select r.definition -> 'notify' as notify
    from schedule_run_items i
    join schedule_runs r using (run_id)
    where i.job_id = ${jobId} and i.is_new`;
}

export async function readRunItems(db: Database, runId: number): Promise<readonly RunItem[]> {
  return (await readItemsOfRuns(db, [runId])).get(runId) ?? [];
}

/** Runs without items are not in the map. */
export async function readItemsOfRuns(
  db: Database,
  runIds: readonly number[],
): Promise<ReadonlyMap<number, readonly RunItem[]>> {
  const rows = await db
    .selectFrom('schedule_run_items')
    .select(camel('run_id', 'item', 'version', 'job_id', 'is_new', 'error_code', 'error_message'))
    .where('run_id', 'in', runIds)
    .orderBy('run_id')
    .orderBy('item')
    .execute();
  const items = new Map<number, RunItem[]>();
  for (const { runId, errorCode, errorMessage, ...item } of rows) {
    const ofRun = items.get(runId) ?? [];
    ofRun.push({ ...item, error: toFailure(errorCode, errorMessage) });
    items.set(runId, ofRun);
  }
  return items;
}

/**
 * Counts the rejects of each run by their code, with the most frequent code first. Counts at most
 * MAX_COUNTED_REJECTS rejects of each run. Runs without rejects are not in the map.
 */
export async function countRejectsOfRuns(
  db: Database,
  runIds: readonly number[],
): Promise<ReadonlyMap<number, Readonly<Record<string, number>>>> {
  const rows = await rowsOf<{ runId: number; codes: Record<string, number> }>(prepared(db))`
    select run_id as "runId", json_object_agg(error_code, rejects order by rejects desc, error_code) as codes
    from (
      select r.run_id, refused.error_code, count(*) as rejects
      from unnest(${[...runIds]}::bigint[]) r (run_id)
      cross join lateral (
        select j.error_code
        from schedule_run_items i
        join loads l using (job_id)
        join load_rejects j using (load_id)
        where i.run_id = r.run_id and i.is_new
        limit ${MAX_COUNTED_REJECTS}
      ) refused
      group by 1, 2
    ) counted
    group by 1`;
  return new Map(rows.map(({ runId, codes }) => [runId, codes]));
}

/** The next attempt may be able to accept refused items. */
export async function dropRefusedItems(db: Database, runId: number): Promise<void> {
  await deleteWhere(db, 'schedule_run_items', { runId }).where('job_id', 'is', null).execute();
}
