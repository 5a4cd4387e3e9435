import { sql } from 'kysely';
import type { Database } from '../database.ts';
import type { RunClaim } from './schedule-claims.ts';

export interface RunItem {
  readonly item: string;
  readonly version: string | null;
  /** Null: it was refused, and the error says why. */
  readonly jobId: string | null;
  readonly isNew: boolean;
  readonly error: { readonly code: string; readonly message: string } | null;
}

/** Call it in the transaction that accepts the job. An item that was refused before may be taken now. */
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

export async function readRunItems(db: Database, runId: number): Promise<RunItem[]> {
  const rows = await db
    .selectFrom('schedule_run_items')
    .selectAll()
    .where('run_id', '=', runId)
    .orderBy('item')
    .execute();
  return rows.map((row) => ({
    item: row.item,
    version: row.version,
    jobId: row.job_id,
    isNew: row.is_new,
    error:
      row.error_code === null ? null : { code: row.error_code, message: row.error_message ?? row.error_code },
  }));
}

/** The version of each item that was loaded last. */
export async function readMemory(
  db: Database,
  { environmentId, name }: Pick<RunClaim, 'environmentId' | 'name'>,
): Promise<ReadonlyMap<string, string>> {
  const rows = await db
    .selectFrom('schedule_memory')
    .select(['item', 'version'])
    .where('environment_id', '=', environmentId)
    .where('schedule_name', '=', name)
    .execute();
  return new Map(rows.map((row) => [row.item, row.version]));
}

export async function remember(
  db: Database,
  environmentId: number,
  name: string,
  item: string,
  version: string,
): Promise<void> {
  await db
    .insertInto('schedule_memory')
    .values({ environment_id: environmentId, schedule_name: name, item, version })
    .onConflict((conflict) =>
      conflict
        .columns(['environment_id', 'schedule_name', 'item'])
        .doUpdateSet({ version, loaded_at: sql<Date>`now()` }),
    )
    .execute();
}

/** As text, with the microseconds that a Date does not keep; null if there was none. */
export async function readExportedUntil(
  db: Database,
  { environmentId, name }: Pick<RunClaim, 'environmentId' | 'name'>,
): Promise<string | null> {
  const row = await db
    .selectFrom('schedules')
    .select(
      sql<string | null>`to_char(exported_until at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`.as(
        'at',
      ),
    )
    .where('environment_id', '=', environmentId)
    .where('schedule_name', '=', name)
    .executeTakeFirst();
  return row?.at ?? null;
}

export async function moveExportedUntil(
  db: Database,
  environmentId: number,
  name: string,
  runId: number,
): Promise<void> {
  await sql`
    update schedules s
    set exported_until = greatest(s.exported_until, r.range_to)
    from schedule_runs r
    where r.run_id = ${runId}
      and s.environment_id = ${environmentId}
      and s.schedule_name = ${name}`.execute(db);
}

/** What an earlier attempt refused may be there now. */
export async function dropRefusedItems(db: Database, runId: number): Promise<void> {
  await db.deleteFrom('schedule_run_items').where('run_id', '=', runId).where('job_id', 'is', null).execute();
}
