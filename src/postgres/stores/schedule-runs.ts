import { sql } from 'kysely';
import { ConflictError, keepableText } from '../../domain/errors.ts';
import { MAX_RUN_LOSSES } from '../../domain/limits.ts';
import type { Notify } from '../../domain/notification.ts';
import type { Database } from '../database.ts';
import { isLapsed, leaseFor } from '../ledger/lease.ts';
import { isUniqueViolation } from '../sqlstate.ts';

/*
 * Runs of schedules: queued → running → waiting for its jobs → ended (completed, completed_with_rejects, unchanged, skipped or
 * failed). `schedule-run-items.ts` reads them, and has what each took.
 */

/** A run that is to be made. */
export interface NewRun {
  readonly dueAt: Date;
  readonly cause: 'due' | 'made_up' | 'asked';
  /** Due times before it that it stands for. */
  readonly missed: number;
  readonly definition: object;
  readonly notify: Notify | null;
  /** Null: it is to be done. */
  readonly skip: { readonly code: string; readonly reason: string } | null;
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
      notify: toJson(run.notify),
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

function toJson(notify: Notify | null): string | null {
  return notify === null ? null : JSON.stringify(notify);
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
  { definition, notify }: Pick<NewRun, 'definition' | 'notify'>,
): Promise<boolean> {
  const row = await db
    .updateTable('schedule_runs')
    .set({
      status: 'queued',
      cause: 'asked',
      definition: JSON.stringify(definition),
      notify: toJson(notify),
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

/** One attempt at one run. The attempt number fences every write it makes. */
export interface RunClaim {
  readonly runId: number;
  readonly environmentId: number;
  readonly name: string;
  readonly dueAt: Date;
  readonly attempt: number;
  /** As `RunDefinition` has it. */
  readonly definition: unknown;
}

/**
 * Takes the run that has waited longest, of those whose schedule has no other under way and none that was due before;
 * null if there is none. Of two that try at once for the same schedule the constraint lets one.
 */
export async function claimRun(db: Database): Promise<RunClaim | null> {
  try {
    const { rows } = await sql<RunClaim>`
      update schedule_runs
      set
        status = 'running',
        attempt = attempt + 1,
        lease_until = ${leaseFor()},
        started_at = coalesce(started_at, now()),
        not_before = null
      where run_id = (
        select run_id
        from schedule_runs r
        where status = 'queued'
          and losses < ${MAX_RUN_LOSSES}
          and (not_before is null or not_before <= now())
          and not exists (
            select
            from schedule_runs o
            where o.environment_id = r.environment_id
              and o.schedule_name = r.schedule_name
              and (o.status in ('running', 'waiting') or (o.status = 'queued' and o.due_at < r.due_at))
          )
        order by due_at, run_id
        limit 1
        for update skip locked
      )
      returning
        run_id as "runId",
        environment_id as "environmentId",
        schedule_name as name,
        due_at as "dueAt",
        attempt,
        definition`.execute(db);
    return rows[0] ?? null;
  } catch (error) {
    if (isUniqueViolation(error)) return null;
    throw error;
  }
}

/** Prolongs the lease; false when the run is no longer ours. */
export async function renewRun(db: Database, claim: RunClaim): Promise<boolean> {
  const row = await own(db, claim).set({ lease_until: leaseFor() }).returning('run_id').executeTakeFirst();
  return row !== undefined;
}

/** Holds the run, if it is still ours, until the transaction ends. @throws ConflictError */
export async function holdRun(db: Database, claim: RunClaim): Promise<void> {
  const row = await db
    .selectFrom('schedule_runs')
    .select('run_id')
    .where('run_id', '=', claim.runId)
    .where('attempt', '=', claim.attempt)
    .where('status', '=', 'running')
    .forUpdate()
    .executeTakeFirst();
  if (row === undefined) throw new ConflictError('another worker has the run');
}

/** Its jobs are under way: nobody need be at it. */
export async function leaveWaiting(db: Database, claim: RunClaim): Promise<void> {
  await own(db, claim).set({ status: 'waiting', lease_until: null }).execute();
}

/** Gives the run back; it is due again after `pauseMs`. No attempt is held against it. */
export async function releaseRun(db: Database, claim: RunClaim, pauseMs = 0): Promise<void> {
  await own(db, claim)
    .set({
      status: 'queued',
      lease_until: null,
      not_before: sql<Date>`now() + ${pauseMs} * interval '1 millisecond'`,
    })
    .execute();
}

/** Gives the run back after an error, to be tried again after `pauseMs` for each; returns how many there were. */
export async function noteRunFailure(
  db: Database,
  claim: RunClaim,
  message: string,
  pauseMs: number,
): Promise<number> {
  const row = await own(db, claim)
    .set((eb) => ({
      status: 'queued',
      lease_until: null,
      not_before: sql<Date>`now() + ${pauseMs} * power(2, failures) * interval '1 millisecond'`,
      failures: eb('failures', '+', 1),
      last_error: keepableText(message),
    }))
    .returning('failures')
    .executeTakeFirst();
  return row?.failures ?? 0;
}

export async function noteRange(
  db: Database,
  claim: RunClaim,
  from: string | null,
  to: string | null,
): Promise<void> {
  await own(db, claim)
    .set({
      range_from: sql<Date | null>`${from}::timestamptz`,
      range_to: sql<Date | null>`${to}::timestamptz`,
    })
    .execute();
}

export async function noteDelivery(db: Database, claim: RunClaim, folder: string): Promise<void> {
  await own(db, claim).set({ delivered_to: folder }).execute();
}

function own(db: Database, claim: RunClaim) {
  return db
    .updateTable('schedule_runs')
    .where('run_id', '=', claim.runId)
    .where('attempt', '=', claim.attempt)
    .where('status', '=', 'running');
}

/** Runs whose worker gave no sign of life: due again. Returns them, with how often each has been lost. */
export async function rescueRuns(db: Database): Promise<{ runId: number; name: string; losses: number }[]> {
  const { rows } = await sql<{ runId: number; name: string; losses: number }>`
    update schedule_runs
    set status = 'queued', lease_until = null, not_before = null, losses = losses + 1
    where status = 'running' and ${isLapsed('lease_until')}
    returning run_id as "runId", schedule_name as name, losses`.execute(db);
  return rows;
}

/** Runs that have lost their workers too often: nobody claims them any more. */
export async function hopelessRuns(db: Database): Promise<{ runId: number; losses: number }[]> {
  return db
    .selectFrom('schedule_runs')
    .select(['run_id as runId', 'losses'])
    .where('status', '=', 'queued')
    .where('losses', '>=', MAX_RUN_LOSSES)
    .execute();
}

/** How a run ends. */
export interface RunEnd {
  readonly status: 'completed' | 'completed_with_rejects' | 'unchanged' | 'skipped' | 'failed';
  readonly code: string | null;
  readonly reason: string | null;
}

/** Ends a run that is in one of the states, if it is; false otherwise. */
export async function endRun(
  db: Database,
  runId: number,
  end: RunEnd,
  from: readonly ('queued' | 'running' | 'waiting')[],
): Promise<boolean> {
  const row = await db
    .updateTable('schedule_runs')
    .set({
      status: end.status,
      ended_at: sql<Date>`now()`,
      lease_until: null,
      reason_code: end.code,
      reason: end.reason,
    })
    .where('run_id', '=', runId)
    .where('status', 'in', [...from])
    .returning('run_id')
    .executeTakeFirst();
  return row !== undefined;
}

/** Takes a waiting run up again, since there is more to do than its jobs. */
export async function resumeRun(db: Database, runId: number): Promise<void> {
  await db
    .updateTable('schedule_runs')
    .set({ status: 'queued', not_before: null })
    .where('run_id', '=', runId)
    .where('status', '=', 'waiting')
    .execute();
}
