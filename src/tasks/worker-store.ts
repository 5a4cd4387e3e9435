import { hostname } from 'node:os';
import { type RawBuilder, sql } from 'kysely';
import type pg from 'pg';
import { LEASE_MS, WORKER_ALIVE_SECONDS } from '../base/limits.ts';
import type { TaskClaim, TaskKindName } from '../domain/task.ts';
import { countOf, type Database, deleteWhere } from '../postgres/database.ts';
import { readFigures } from '../postgres/pool.ts';

/* Signs of life of the worker processes. */

export async function showWorker(db: Database, workerId: string): Promise<void> {
  await db
    .insertInto('workers')
    .values({ worker_id: workerId, host: hostname(), pid: process.pid })
    .onConflict((conflict) => conflict.column('worker_id').doUpdateSet({ seen_at: sql`excluded.seen_at` }))
    .execute();
}

export async function removeWorker(db: Database, workerId: string): Promise<void> {
  await deleteWhere(db, 'workers', { workerId }).execute();
}

export interface LiveWorker {
  readonly host: string;
  readonly pid: number;
  readonly startedAt: Date;
}

export function readLiveWorkers(watch: pg.Pool): Promise<LiveWorker[]> {
  return readFigures(
    watch,
    `select host, pid, started_at as "startedAt"
    from workers
    where seen_at > now() - interval '${WORKER_ALIVE_SECONDS} s'
    order by started_at, worker_id`,
  );
}

export function countLiveWorkers(db: Database): Promise<number> {
  return countOf(db)`
    select count(*) from workers where seen_at > now() - ${WORKER_ALIVE_SECONDS} * interval '1 second'`;
}

/*
 * A worker that is paused in the middle of a transaction keeps its row locks, and with them whoever takes its work over, or merely
 * wants to count it done, would wait. So every transaction of a task names its session after the attempt it works for, and an
 * attempt that has lost its lease loses its session too. It could not have committed anyway. While an export reads it has no locks
 * that matter, but its statement and its snapshot would stay for as long as the pause does: what is deleted meanwhile could not be
 * vacuumed away. Only in this database: another on the same server may have a task of the same number.
 */

export function taskSessionName({ kind, taskId, attempt }: TaskClaim): string {
  return `${sessionPrefix({ kind, taskId })}${attempt}`;
}

function sessionPrefix({ kind, taskId }: Pick<TaskClaim, 'kind' | 'taskId'>): string {
  return `sluice ${kind} ${taskId}:`;
}

/** Names the session for the rest of the transaction; if the task is of a load, changes are logged as the load's. */
export async function nameTaskSession(db: Database, claim: TaskClaim): Promise<void> {
  const loadId = claim.kind === 'chunk' || claim.kind === 'finish' ? String(claim.subjectId) : '';
  await sql`
    select
      set_config('application_name', ${taskSessionName(claim)}, true),
      set_config('sluice.load_id', ${loadId}, true)`.execute(db);
}

/** Ends the session of this attempt, and with it the transaction that it may be in. */
export async function endOwnSession(db: Database, claim: TaskClaim): Promise<void> {
  await endSessions(db, sql`application_name = ${taskSessionName(claim)}`);
}

export async function endTaskSessions(db: Database, task: Pick<TaskClaim, 'kind' | 'taskId'>): Promise<void> {
  await endSessions(db, sql`starts_with(application_name, ${sessionPrefix(task)})`);
}

/** Ends the sessions of earlier attempts; not of later ones, in case this is the one that is late. */
export async function endEarlierSessions(db: Database, claim: TaskClaim): Promise<void> {
  if (claim.attempt === 1) return;
  const prefix = sessionPrefix(claim);
  await endSessions(
    db,
    sql`case
      when application_name ~ ${`^${prefix}[0-9]+$`}
        then split_part(application_name, ':', 2)::bigint < ${claim.attempt}
      else false
    end`,
  );
}

/**
 * Ends the sessions of attempts that have lost their lease, or whose task is gone; how many. One whose transaction is younger than
 * this statement may be of an attempt that was claimed since, and is left alone. Takes no lock, so none of theirs can stop it.
 */
export async function endLostSessions(db: Database, kinds: readonly TaskKindName[]): Promise<number> {
  return endSessions(
    db,
    sql`application_name ~ '^sluice [a-z]+ [0-9]+:[0-9]+$'
      and split_part(application_name, ' ', 2) = any (${[...kinds]}::text[])
      and xact_start < now()
      and application_name not in (
        select 'sluice ' || kind || ' ' || task_id || ':' || attempt
        from tasks
        where lease_until is not null and not ${isLapsed}
      )`,
  );
}

async function endSessions(db: Database, which: ReturnType<typeof sql>): Promise<number> {
  const { rows } = await sql`
    select pg_terminate_backend(pid)
    from pg_stat_activity
    where datname = current_database()
      and usename = current_user
      and pid <> pg_backend_pid()
      and ${which}`.execute(db);
  return rows.length;
}

/*
 * A lease says until when a piece of work belongs to whoever took it, on the database's clock. That clock may go back: after
 * a failover to a machine whose clock is behind, leases lie far ahead, and what a killed worker had would stay with it for
 * as long. Nobody is given a lease beyond its length, so one that is further away than twice that has lapsed.
 */
export function leaseFor(): RawBuilder<Date> {
  return sql<Date>`now() + ${LEASE_MS} * interval '1 millisecond'`;
}

/** Tells whether a lease has lapsed; false where there is none. */
export const isLapsed = sql<boolean>`(
  lease_until < now() or lease_until > now() + 2 * ${LEASE_MS} * interval '1 millisecond'
)`;

/** Tells whether the queue was not notified for so long, or only at a time to come, because the clock went back. */
export function isNotifiedLongAgo(olderThanMs: number, column: string): RawBuilder<boolean> {
  const at = sql.ref(column);
  const age = sql`${olderThanMs} * interval '1 millisecond'`;
  return sql<boolean>`(${at} is null or ${at} < now() - ${age} or ${at} > now() + ${age})`;
}
