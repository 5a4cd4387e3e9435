import { sql } from 'kysely';
import type { TaskClaim } from '../../domain/task.ts';
import { instantText } from '../columns.ts';
import type { Database } from '../database.ts';
import { isOwn } from './tasks.ts';

/* Schedules as the workers remember them: up to when they were seen to, what they have loaded and exported, how they fare. */

export interface Considered {
  readonly until: Date;
  readonly pausedAt: Date | null;
}

const consideredColumns = ['considered_until as until', 'paused_at as pausedAt'] as const;

export async function readConsidered(db: Database): Promise<Map<string, Considered>> {
  const rows = await db
    .selectFrom('schedules')
    .select(['environment_id', 'schedule_name', ...consideredColumns])
    .execute();
  return new Map(rows.map((row) => [scheduleKey(row.environment_id, row.schedule_name), row]));
}

export async function readPauses(db: Database, environmentId: number): Promise<ReadonlyMap<string, Date>> {
  const rows = await db
    .selectFrom('schedules')
    .select(['schedule_name', 'paused_at'])
    .where('environment_id', '=', environmentId)
    .execute();
  return new Map(
    rows.flatMap((row) => (row.paused_at === null ? [] : [[row.schedule_name, row.paused_at] as const])),
  );
}

/** Pauses a schedule, or lets it go on; what was due meanwhile is not made up. */
export async function setPaused(
  db: Database,
  environmentId: number,
  name: string,
  isPaused: boolean,
  now: Date,
): Promise<void> {
  await db
    .updateTable('schedules')
    .set(
      isPaused
        ? { paused_at: now }
        : { paused_at: null, considered_until: sql<Date>`greatest(considered_until, ${now})` },
    )
    .where((eb) => eb.and({ environment_id: environmentId, schedule_name: name }))
    .where('paused_at', isPaused ? 'is' : 'is not', null)
    .execute();
}

export function scheduleKey(environmentId: number, name: string): string {
  return `${environmentId}/${name}`;
}

/** Adds a schedule, of which nothing before `now` is due. Does nothing if it is known. */
export async function addSchedule(
  db: Database,
  environmentId: number,
  name: string,
  now: Date,
): Promise<void> {
  await db
    .insertInto('schedules')
    .values({ environment_id: environmentId, schedule_name: name, considered_until: now })
    .onConflict((conflict) => conflict.columns(['environment_id', 'schedule_name']).doNothing())
    .execute();
}

/** Locks the schedule, so that nobody else considers its due times until the transaction ends. */
export async function lockSchedule(db: Database, environmentId: number, name: string): Promise<Considered> {
  return db
    .selectFrom('schedules')
    .select(consideredColumns)
    .where((eb) => eb.and({ environment_id: environmentId, schedule_name: name }))
    .forUpdate()
    .executeTakeFirstOrThrow();
}

export async function markConsidered(
  db: Database,
  environmentId: number,
  name: string,
  until: Date,
): Promise<void> {
  await db
    .updateTable('schedules')
    .set({ considered_until: until })
    .where((eb) => eb.and({ environment_id: environmentId, schedule_name: name }))
    .where('considered_until', '<', until)
    .execute();
}

export async function readMemory(
  db: Database,
  { environmentId, name }: { readonly environmentId: number; readonly name: string },
): Promise<ReadonlyMap<string, string>> {
  const rows = await db
    .selectFrom('schedule_memory')
    .select(['item', 'version'])
    .where((eb) => eb.and({ environment_id: environmentId, schedule_name: name }))
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
        .doUpdateSet({ version, loaded_at: sql<Date>`excluded.loaded_at` }),
    )
    .execute();
}

/*
 * Ranges of scheduled exports: the time up to which a schedule has exported, and the records that may still be stored under a
 * time within a range. Times are texts with microseconds, which a Date does not keep.
 */

interface ScheduleName {
  readonly environmentId: number;
  readonly name: string;
}

export async function readExportedUntil(
  db: Database,
  { environmentId, name }: ScheduleName,
): Promise<string | null> {
  const row = await db
    .selectFrom('schedules')
    .select(instantText<string | null>(sql.ref('exported_until')).as('at'))
    .where((eb) => eb.and({ environment_id: environmentId, schedule_name: name }))
    .executeTakeFirst();
  return row?.at ?? null;
}

/**
 * Moves the start of the next range to the end of this run's range. If the clock of the database went back to before that end
 * while the export was written, the start stays, and the next run exports the range again.
 */
export async function moveExportedUntil(
  db: Database,
  { environmentId, name }: ScheduleName,
  runId: number,
): Promise<void> {
  await sql`
    update schedules s
    set exported_until = greatest(s.exported_until, r.range_to)
    from schedule_runs r
    where r.run_id = ${runId}
      and r.range_to <= clock_timestamp()
      and s.environment_id = ${environmentId}
      and s.schedule_name = ${name}`.execute(db);
}

export interface TakenBack {
  readonly schedule: string;
  readonly from: Date;
  readonly to: Date;
}

/**
 * Moves the start of every next range to `lagMs` ago or earlier. It lies there already unless the clock of the database went
 * back; then records are being stored under times that were exported before.
 */
export async function takeBackExportedUntil(db: Database, lagMs: number): Promise<TakenBack[]> {
  const latest = sql<Date>`clock_timestamp() - ${lagMs} * interval '1 millisecond'`;
  const { rows } = await sql<TakenBack>`
    update schedules s
    set exported_until = ${latest}
    from (
      select environment_id, schedule_name, exported_until
      from schedules
      where exported_until > ${latest}
      for update
    ) before
    where s.environment_id = before.environment_id and s.schedule_name = before.schedule_name
    returning s.schedule_name as schedule, before.exported_until as "from", s.exported_until as "to"`.execute(
    db,
  );
  return rows;
}

/**
 * Returns the milliseconds to wait until every transaction that stores records under a time before `to` has ended; at least until
 * `lagMs` after `to`. Records have the time at which their transaction began or, shortly before, at which they came in. The
 * snapshots of exports, archives and backups are ignored: they write no records, and may be held for hours.
 */
export async function untilCommitted(db: Database, to: string, lagMs: number): Promise<number> {
  const { rows } = await sql<{ early_ms: number; is_written: boolean }>`
    select
      extract(epoch from ${to}::timestamptz + ${lagMs} * interval '1 millisecond' - clock_timestamp())::float8
        * 1000 as early_ms,
      exists (
        select 1
        from pg_stat_activity
        where datname = current_database()
          and application_name like 'sluice %'
          and application_name !~ '^sluice (export [0-9]+:[0-9]+|export preview|archive|copy)$'
          and pid <> pg_backend_pid()
          and xact_start < ${to}::timestamptz
      ) as is_written`.execute(db);
  const [{ early_ms, is_written } = { early_ms: 0, is_written: false }] = rows;
  if (early_ms > 0) return Math.ceil(early_ms);
  return is_written ? 1_000 : 0;
}

/** A load that may still store records under the time at which it was accepted. */
export interface UnfinishedLoad {
  readonly jobId: string;
  readonly acceptedAt: string;
  /** The load was accepted longer ago than exports wait for. */
  readonly isOld: boolean;
}

/** Returns the first load accepted in the range that has not ended, an old one only if there is no other; `null` if there is none. */
export async function findUnfinishedLoad(
  db: Database,
  environmentId: number,
  { from, to }: { readonly from: string | null; readonly to: string },
  holdMs: number,
): Promise<UnfinishedLoad | null> {
  const { rows } = await sql<UnfinishedLoad>`
    select
      job_id as "jobId",
      ${instantText(sql`accepted_at`)} as "acceptedAt",
      accepted_at < clock_timestamp() - ${holdMs} * interval '1 millisecond' as "isOld"
    from loads
    where environment_id = ${environmentId}
      and status in ('queued', 'processing')
      and pass not in ('dry_run', 'plan')
      and accepted_at >= coalesce(${from}::timestamptz, '-infinity')
      and accepted_at < ${to}::timestamptz
    order by "isOld", accepted_at
    limit 1`.execute(db);
  return rows[0] ?? null;
}

export async function readWait(db: Database, taskId: number): Promise<string | null> {
  const row = await db
    .selectFrom('tasks')
    .select('last_error')
    .where('task_id', '=', taskId)
    .executeTakeFirst();
  return row?.last_error ?? null;
}

export async function endWait(db: Database, taskId: number): Promise<void> {
  await db.updateTable('tasks').set({ last_error: null }).where('task_id', '=', taskId).execute();
}

export async function setRange(
  db: Database,
  runId: number,
  from: string | null,
  to: string | null,
): Promise<void> {
  await db
    .updateTable('schedule_runs')
    .set({
      range_from: sql<Date | null>`${from}::timestamptz`,
      range_to: sql<Date | null>`${to}::timestamptz`,
    })
    .where('run_id', '=', runId)
    .execute();
}

/** Notes the folder of the run's files. Does nothing if the task is no longer the claim's own. */
export async function setDeliveredTo(db: Database, claim: TaskClaim, folder: string): Promise<void> {
  await db
    .updateTable('schedule_runs')
    .set({ delivered_to: folder })
    .where('run_id', '=', claim.subjectId)
    .where((eb) => eb.exists(eb.selectFrom('tasks').select('task_id').where(isOwn(claim))))
    .execute();
}
