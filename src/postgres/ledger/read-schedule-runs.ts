import type { RunStatus } from '../../domain/run-status.ts';
import type { Database } from '../database.ts';

/** A run as its row tells it. Times in UTC. */
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
  readonly notify: unknown;
}

export interface RunFilter {
  readonly environmentId?: number;
  readonly name?: string;
  readonly dueAt?: Date;
  readonly status?: readonly RunStatus[];
}

/** Latest due time first. */
export async function readRuns(db: Database, filter: RunFilter, limit: number): Promise<ScheduleRun[]> {
  let query = db
    .selectFrom('schedule_runs')
    .innerJoin('environments', 'environments.environment_id', 'schedule_runs.environment_id');
  const { environmentId, name, dueAt, status } = filter;
  if (environmentId !== undefined) query = query.where('schedule_runs.environment_id', '=', environmentId);
  if (name !== undefined) query = query.where('schedule_name', '=', name);
  if (dueAt !== undefined) query = query.where('due_at', '=', dueAt);
  if (status !== undefined) query = query.where('status', 'in', [...status]);
  const rows = await query
    .selectAll('schedule_runs')
    .select('environments.name as environment')
    .orderBy('due_at', 'desc')
    .orderBy('run_id', 'desc')
    .limit(limit)
    .execute();
  return rows.map((row) => ({
    runId: row.run_id,
    environmentId: row.environment_id,
    environment: row.environment,
    name: row.schedule_name,
    dueAt: row.due_at,
    cause: row.cause as ScheduleRun['cause'],
    status: row.status as RunStatus,
    missed: row.missed,
    startedAt: row.started_at,
    endedAt: row.ended_at,
    attempts: row.attempt,
    rangeFrom: row.range_from,
    rangeTo: row.range_to,
    deliveredTo: row.delivered_to,
    code: row.reason_code,
    reason: row.reason,
    lastError: row.last_error,
    definition: row.definition,
    notify: row.notify,
  }));
}
