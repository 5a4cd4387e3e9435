import { sql } from 'kysely';
import type { Database } from '../database.ts';

/** A run that is to be made. */
export interface NewRun {
  readonly dueAt: Date;
  readonly cause: 'due' | 'made_up' | 'asked';
  /** Due times before it that it stands for. */
  readonly missed: number;
  readonly definition: object;
  readonly notify: object | null;
  /** Null: it is to be done. */
  readonly skip: { readonly code: string; readonly reason: string } | null;
}

/** Up to when the due times of each schedule have been seen to, by environment id and name. */
export async function readConsidered(db: Database): Promise<Map<string, Date>> {
  const rows = await db
    .selectFrom('schedules')
    .select(['environment_id', 'schedule_name', 'considered_until'])
    .execute();
  return new Map(
    rows.map((row) => [scheduleKey(row.environment_id, row.schedule_name), row.considered_until]),
  );
}

export function scheduleKey(environmentId: number, name: string): string {
  return `${environmentId}/${name}`;
}

/** Notes that a schedule is there, and that nothing before `now` is asked of it. Does nothing if it is known. */
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

/** Up to when its due times have been seen to. Holds the schedule until the transaction ends: nobody else sees to them. */
export async function lockSchedule(db: Database, environmentId: number, name: string): Promise<Date> {
  const row = await db
    .selectFrom('schedules')
    .select('considered_until')
    .where('environment_id', '=', environmentId)
    .where('schedule_name', '=', name)
    .forUpdate()
    .executeTakeFirstOrThrow();
  return row.considered_until;
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
    .where('environment_id', '=', environmentId)
    .where('schedule_name', '=', name)
    .where('considered_until', '<', until)
    .execute();
}

/** Whether a run of the schedule has not ended yet. */
export async function hasOpenRun(db: Database, environmentId: number, name: string): Promise<boolean> {
  const row = await db
    .selectFrom('schedule_runs')
    .select('run_id')
    .where('environment_id', '=', environmentId)
    .where('schedule_name', '=', name)
    .where('status', 'in', ['queued', 'running', 'waiting'])
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Makes the run of a due time, once: null if there is one. */
export async function insertRun(
  db: Database,
  environmentId: number,
  name: string,
  run: NewRun,
): Promise<number | null> {
  const row = await db
    .insertInto('schedule_runs')
    .values({
      environment_id: environmentId,
      schedule_name: name,
      due_at: run.dueAt,
      cause: run.cause,
      missed: run.missed,
      definition: JSON.stringify(run.definition),
      notify: run.notify === null ? null : JSON.stringify(run.notify),
      ...(run.skip !== null && {
        status: 'skipped',
        ended_at: sql<Date>`now()`,
        reason_code: run.skip.code,
        reason: run.skip.reason,
      }),
    })
    .onConflict((conflict) => conflict.constraint('schedule_runs_due_key').doNothing())
    .returning('run_id')
    .executeTakeFirst();
  return row?.run_id ?? null;
}

/**
 * A run that failed or was skipped is to be done again, as the file says now; what it took stays taken, unless its job
 * came to nothing. False if there is no such run. Call it inside a transaction.
 */
export async function requeueRun(
  db: Database,
  environmentId: number,
  name: string,
  dueAt: Date,
  definition: object,
): Promise<boolean> {
  const row = await db
    .updateTable('schedule_runs')
    .set({
      status: 'queued',
      cause: 'asked',
      definition: JSON.stringify(definition),
      ended_at: null,
      reason: null,
      reason_code: null,
      not_before: null,
      losses: 0,
      failures: 0,
    })
    .where('environment_id', '=', environmentId)
    .where('schedule_name', '=', name)
    .where('due_at', '=', dueAt)
    .where('status', 'in', ['failed', 'skipped'])
    .returning('run_id')
    .executeTakeFirst();
  if (row === undefined) return false;
  await sql`
    delete from schedule_run_items i
    where run_id = ${row.run_id}
      and not exists (
        select
        from loads l
        where l.job_id = i.job_id and l.status not in ('failed', 'cancelled')
      )
      and not exists (
        select
        from exports e
        where e.job_id = i.job_id and e.status not in ('failed', 'cancelled') and e.files_expired_at is null
      )`.execute(db);
  return true;
}

/** Forgets runs that ended long ago; how many. The last of each schedule stays. */
export async function deleteRuns(db: Database, days: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from schedule_runs r
    where ended_at < now() - ${days} * interval '1 day'
      and exists (
        select
        from schedule_runs later
        where later.environment_id = r.environment_id
          and later.schedule_name = r.schedule_name
          and later.due_at > r.due_at
      )`.execute(db);
  return Number(numAffectedRows ?? 0);
}
