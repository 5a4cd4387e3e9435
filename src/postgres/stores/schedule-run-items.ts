import { sql } from 'kysely';
import { endedStatuses } from '../../domain/load.ts';
import type { Notify } from '../../domain/notification.ts';
import type { RunStatus } from '../../domain/run-status.ts';
import type { Database } from '../database.ts';

/* Runs of schedules as they are read and shown, and what each took. */

/** A run as its row. Times in UTC. */
export interface ScheduleRun {
  readonly runId: number;
  readonly environmentId: number;
  readonly environment: string;
  readonly name: string;
  readonly dueAt: Date;
  readonly cause: 'due' | 'made_up' | 'asked';
  readonly status: RunStatus;
  readonly missed: number;
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
  readonly attempts: number;
  readonly rangeFrom: Date | null;
  readonly rangeTo: Date | null;
  readonly deliveredTo: string | null;
  readonly code: string | null;
  readonly reason: string | null;
  /** What went wrong at the last attempt, should another follow. */
  readonly lastError: string | null;
  readonly definition: unknown;
  readonly notify: Notify | null;
}

export interface RunFilter {
  readonly runId?: number;
  readonly environmentId?: number;
  readonly name?: string;
  readonly dueAt?: Date;
}

/** Latest due time first. */
export async function readRuns(db: Database, filter: RunFilter, limit: number): Promise<ScheduleRun[]> {
  let query = selectRuns(db);
  const { runId, environmentId, name, dueAt } = filter;
  if (runId !== undefined) query = query.where('run_id', '=', runId);
  if (environmentId !== undefined) query = query.where('schedule_runs.environment_id', '=', environmentId);
  if (name !== undefined) query = query.where('schedule_name', '=', name);
  if (dueAt !== undefined) query = query.where('due_at', '=', dueAt);
  const rows = await query.orderBy('due_at', 'desc').orderBy('run_id', 'desc').limit(limit).execute();
  return rows.map(toRun);
}

/** Those that wait for their jobs although none is under way any more: in the order in which they were made, of those after `after`. */
export async function readRunsToEnd(db: Database, after: number, limit: number): Promise<ScheduleRun[]> {
  const isOpen = sql`j.job_id = i.job_id and j.status <> all (${[...endedStatuses]}::text[])`;
  const rows = await selectRuns(db)
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
  return rows.map(toRun);
}

function selectRuns(db: Database) {
  return db
    .selectFrom('schedule_runs')
    .innerJoin('environments', 'environments.environment_id', 'schedule_runs.environment_id')
    .leftJoin('tasks', (join) =>
      join.on('tasks.kind', '=', 'run').onRef('tasks.subject_id', '=', 'schedule_runs.run_id'),
    )
    .selectAll('schedule_runs')
    .select(['environments.name as environment', 'tasks.lease_until', 'tasks.last_error as task_error']);
}

type RunRow = Awaited<ReturnType<ReturnType<typeof selectRuns>['execute']>>[number];

function toRun(row: RunRow): ScheduleRun {
  return {
    runId: row.run_id,
    environmentId: row.environment_id,
    environment: row.environment,
    name: row.schedule_name,
    dueAt: row.due_at,
    cause: row.cause as ScheduleRun['cause'],
    status: row.lease_until === null ? (row.status as RunStatus) : 'running',
    missed: row.missed,
    startedAt: row.started_at,
    endedAt: row.ended_at,
    attempts: row.attempts,
    rangeFrom: row.range_from,
    rangeTo: row.range_to,
    deliveredTo: row.delivered_to,
    code: row.reason_code,
    reason: row.reason,
    lastError: row.task_error ?? row.last_error,
    definition: row.definition,
    notify: row.notify as unknown as Notify | null,
  };
}

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

/** What an earlier attempt refused may be there now. */
export async function dropRefusedItems(db: Database, runId: number): Promise<void> {
  await db.deleteFrom('schedule_run_items').where('run_id', '=', runId).where('job_id', 'is', null).execute();
}
