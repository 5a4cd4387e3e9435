import { sql } from 'kysely';
import { endedStatuses } from '../../domain/load.ts';
import type { DueTask } from '../../domain/task.ts';
import { camel, daysAgo } from '../../postgres/columns.ts';
import { changedBy, type Database, hasRows, prepared, rowsOf, updateWhere } from '../../postgres/database.ts';
import type { RunStatus } from './api.ts';

/*
 * Runs of schedules: queued → waiting for jobs → ended. The next queued run of a schedule has a
 * task of kind `run`. The run counts as running while a worker holds that task.
 */

declare module '../../postgres/columns.ts' {
  interface Known {
    schedule_runs: { cause: NewRun['cause']; definition: object; status: RunStatus };
    schedules: { definition: object | null };
  }
}

export interface NewRun {
  readonly dueAt: Date;
  readonly cause: 'due' | 'made_up' | 'asked';
  /** Number of earlier due times that this run also covers. */
  readonly missed: number;
  readonly definition: object;
  readonly skip: { readonly code: string; readonly reason: string } | null;
}

export function hasOpenRun(db: Database, environmentId: number, name: string): Promise<boolean> {
  return hasRows(db)`
    select 1
    from schedule_runs
    where environment_id = ${environmentId} and schedule_name = ${name} and status in ('queued', 'waiting')
    limit 1`;
}

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
 * Queues a failed or skipped run again. Drops refused items, items whose job failed or was
 * cancelled, and exports whose files no longer exist. Returns false for a run in any other state.
 * Must be called in a transaction.
 */
export async function requeueRun(
  db: Database,
  environmentId: number,
  name: string,
  dueAt: Date,
  definition: object,
): Promise<boolean> {
  const row = await updateWhere(db, 'schedule_runs', { environmentId, scheduleName: name, dueAt })
    .set({
      status: 'queued',
      cause: 'asked',
      definition: JSON.stringify(definition),
      ended_at: null,
      reason: null,
      reason_code: null,
    })
    .where('status', 'in', ['failed', 'skipped'])
    .returning('run_id')
    .executeTakeFirst();
  if (row === undefined) return false;
  await sql`
    delete from schedule_run_items i
    where run_id = ${row.run_id}
      and not exists (
        select 1
        from loads l
        where l.job_id = i.job_id and l.status not in ('failed', 'cancelled')
      )
      and not exists (
        select 1
        from exports e
        where e.job_id = i.job_id and e.status not in ('failed', 'cancelled') and e.files_expired_at is null
      )`.execute(db);
  return true;
}

/** Deletes runs that ended more than `days` days ago, except the last run of each schedule. */
export function deleteRuns(db: Database, days: number): Promise<number> {
  return changedBy(db)`
    delete from schedule_runs r
    where ended_at < ${daysAgo(days)}
      and exists (
        select 1
        from schedule_runs later
        where later.environment_id = r.environment_id
          and later.schedule_name = r.schedule_name
          and later.due_at > r.due_at
      )`;
}

export type RunWork = NonNullable<Awaited<ReturnType<typeof beginRun>>>;

/**
 * Creates the tasks of queued runs. Only schedules without an active run get a task. Skips locked
 * schedules.
 */
export function queueRuns(db: Database): Promise<DueTask[]> {
  return rowsOf<DueTask>(prepared(db))`
    with idle as (
      select s.environment_id, s.schedule_name
      from schedules s
      where exists (
        select 1
        from schedule_runs r
        where r.environment_id = s.environment_id and r.schedule_name = s.schedule_name and r.status = 'queued'
      )
      for update skip locked
    ),
    first as (
      select r.run_id, r.environment_id
      from idle i
      cross join lateral (
        select run_id, environment_id
        from schedule_runs r
        where r.environment_id = i.environment_id and r.schedule_name = i.schedule_name and r.status = 'queued'
        order by due_at
        limit 1
      ) r
      where not exists (
        select 1
        from schedule_runs o
        left join tasks t on t.kind = 'run' and t.subject_id = o.run_id
        where o.environment_id = i.environment_id
          and o.schedule_name = i.schedule_name
          and (o.status = 'waiting' or (o.status = 'queued' and t.task_id is not null))
      )
    )
    insert into tasks as t (kind, subject_id, environment_id, notified_at)
    select 'run', run_id, environment_id, now()
    from first
    on conflict (kind, subject_id, part) do nothing
    returning t.task_id as "taskId", t.kind, t.attempt`;
}

export async function beginRun(db: Database, runId: number) {
  const row = await updateWhere(db, 'schedule_runs', { runId, status: 'queued' })
    .set((eb) => ({ attempts: eb('attempts', '+', 1), started_at: sql<Date>`coalesce(started_at, now())` }))
    .returning(['environment_id as environmentId', 'schedule_name as name', 'due_at as dueAt', 'definition'])
    .executeTakeFirst();
  return row === undefined ? null : { runId, ...row };
}

/** Must be called in the transaction that ends the run's task, before the task ends. */
export async function markWaiting(db: Database, runId: number): Promise<void> {
  await sql`
    update schedule_runs
    set
      status = 'waiting',
      last_error = coalesce(
        (select t.last_error from tasks t where t.kind = 'run' and t.subject_id = run_id),
        last_error
      )
    where run_id = ${runId} and status = 'queued'`.execute(db);
}

export interface RunEnd {
  readonly status: 'completed' | 'completed_with_rejects' | 'unchanged' | 'skipped' | 'failed';
  readonly code: string | null;
  readonly reason: string | null;
}

export async function endRun(
  db: Database,
  runId: number,
  end: RunEnd,
  from: 'queued' | 'waiting',
): Promise<boolean> {
  const row = await updateWhere(db, 'schedule_runs', { runId, status: from })
    .set({ status: end.status, ended_at: sql<Date>`now()`, reason_code: end.code, reason: end.reason })
    .returning('run_id')
    .executeTakeFirst();
  return row !== undefined;
}

/** Queues a waiting run again, because it has work to do after its jobs. */
export async function resumeRun(db: Database, runId: number): Promise<void> {
  await updateWhere(db, 'schedule_runs', { runId, status: 'waiting' }).set({ status: 'queued' }).execute();
}

export type ScheduleRun = Awaited<ReturnType<ReturnType<typeof selectRuns>['execute']>>[number];

export interface RunFilter {
  readonly runId?: number;
  readonly environmentId?: number;
  readonly name?: string;
  readonly dueAt?: Date;
}

export async function readRuns(db: Database, filter: RunFilter, limit: number): Promise<ScheduleRun[]> {
  const { runId, environmentId, name, dueAt } = filter;
  let query = selectRuns(db);
  if (runId !== undefined) query = query.where('run_id', '=', runId);
  if (environmentId !== undefined) query = query.where('schedule_runs.environment_id', '=', environmentId);
  if (name !== undefined) query = query.where('schedule_name', '=', name);
  if (dueAt !== undefined) query = query.where('due_at', '=', dueAt);
  return query.orderBy('due_at', 'desc').orderBy('run_id', 'desc').limit(limit).execute();
}

/**
 * Returns the waiting runs whose jobs have all ended, in the order in which the runs were created.
 */
export async function readRunsToEnd(db: Database, after: number, limit: number): Promise<ScheduleRun[]> {
  const isOpen = sql`j.job_id = i.job_id and j.status <> all (${[...endedStatuses]}::text[])`;
  return selectRuns(prepared(db))
    .where('status', '=', 'waiting')
    .where('run_id', '>', after)
    .where(
      sql<boolean>`not exists (
        select 1 from schedule_run_items i
        where i.run_id = schedule_runs.run_id
          and (exists (select 1 from loads j where ${isOpen}) or exists (select 1 from exports j where ${isOpen}))
      )`,
    )
    .orderBy('run_id')
    .limit(limit)
    .execute();
}

function selectRuns(db: Database) {
  return db
    .selectFrom('schedule_runs')
    .innerJoin('environments', 'environments.environment_id', 'schedule_runs.environment_id')
    .leftJoin('tasks', (join) =>
      join.on('tasks.kind', '=', 'run').onRef('tasks.subject_id', '=', 'schedule_runs.run_id'),
    )
    .leftJoinLateral(
      (eb) =>
        eb
          .selectFrom('schedule_run_items as i')
          .innerJoin('loads as l', 'l.job_id', 'i.job_id')
          .select('l.job_id')
          .whereRef('i.run_id', '=', 'schedule_runs.run_id')
          .where('schedule_runs.status', '=', 'waiting')
          .where('l.status', '=', 'held')
          .limit(1)
          .as('held'),
      (join) => join.onTrue(),
    )
    .select(camel('run_id', 'schedule_runs.environment_id', 'due_at', 'cause', 'missed', 'started_at'))
    .select(camel('ended_at', 'attempts', 'range_from', 'range_to', 'delivered_to', 'definition'))
    .select(['schedule_runs.created_at as createdAt', 'held.job_id as heldJob'])
    .select(['environments.name as environment', 'schedule_name as name', 'reason_code as code'])
    .select([
      sql<RunStatus>`case
        when lease_until is not null then 'running'
        when held.job_id is not null then 'held'
        else schedule_runs.status
      end`.as('status'),
      sql<
        string | null
      >`coalesce('job ' || held.job_id || ' is held: sluice jobs release, or cancel', reason)`.as('reason'),
      sql<string | null>`coalesce(tasks.last_error, schedule_runs.last_error)`.as('lastError'),
    ]);
}
