import { sql } from 'kysely';
import { endedStatuses } from '../../domain/load.ts';
import type { Notify } from '../../domain/notification.ts';
import type { RunStatus } from '../../domain/run-status.ts';
import { camel, toFailure } from '../columns.ts';
import type { Database } from '../database.ts';

/* Runs of schedules as they are shown, and the items that each took. */

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
  /** The last error of a run that is tried again. */
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

/** Reads runs, latest due time first. */
export async function readRuns(db: Database, filter: RunFilter, limit: number): Promise<ScheduleRun[]> {
  let query = selectRuns(db);
  const { runId, environmentId, name, dueAt } = filter;
  if (runId !== undefined) query = query.where('run_id', '=', runId);
  if (environmentId !== undefined) query = query.where('schedule_runs.environment_id', '=', environmentId);
  if (name !== undefined) query = query.where('schedule_name', '=', name);
  if (dueAt !== undefined) query = query.where('due_at', '=', dueAt);
  return query.orderBy('due_at', 'desc').orderBy('run_id', 'desc').limit(limit).execute();
}

/** Reads runs after `after` that wait for their jobs although all have ended, in the order in which they were made. */
export async function readRunsToEnd(db: Database, after: number, limit: number): Promise<ScheduleRun[]> {
  const isOpen = sql`j.job_id = i.job_id and j.status <> all (${[...endedStatuses]}::text[])`;
  return selectRuns(db)
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
    .select(camel('run_id', 'schedule_runs.environment_id', 'due_at', 'cause', 'missed', 'started_at'))
    .select(camel('ended_at', 'attempts', 'range_from', 'range_to', 'delivered_to', 'reason', 'definition'))
    .select(['environments.name as environment', 'schedule_name as name', 'reason_code as code', 'notify'])
    .select([
      sql<RunStatus>`case when lease_until is null then schedule_runs.status else 'running' end`.as('status'),
      sql<string | null>`coalesce(tasks.last_error, schedule_runs.last_error)`.as('lastError'),
    ]);
}

export interface RunItem {
  readonly item: string;
  readonly version: string | null;
  /** `null`: it was refused, and the error says why. */
  readonly jobId: string | null;
  readonly isNew: boolean;
  readonly error: { readonly code: string; readonly message: string } | null;
}

/** Call it in the transaction that accepts the job. Replaces an item that was refused before. */
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
    .select(camel('item', 'version', 'job_id', 'is_new', 'error_code', 'error_message'))
    .where('run_id', '=', runId)
    .orderBy('item')
    .execute();
  return rows.map(({ errorCode, errorMessage, ...item }) => ({
    ...item,
    error: toFailure(errorCode, errorMessage),
  }));
}

/** Forgets what an earlier attempt refused: it may be acceptable now. */
export async function dropRefusedItems(db: Database, runId: number): Promise<void> {
  await db.deleteFrom('schedule_run_items').where('run_id', '=', runId).where('job_id', 'is', null).execute();
}
