import { hostname } from 'node:os';
import { type RawBuilder, sql } from 'kysely';
import type pg from 'pg';
import { LEASE_MS, WORKER_ALIVE_SECONDS } from '../base/limits.ts';
import type { TaskClaim, TaskKindName } from '../domain/task.ts';
import {
  countOf,
  type Database,
  deleteWhere,
  inTransaction,
  type LocalSettings,
  prepared,
  type Transaction,
} from '../postgres/database.ts';
import { readFigures } from '../postgres/pool.ts';

export async function showWorker(db: Database, workerId: string): Promise<void> {
  await prepared(db)
    .insertInto('workers')
    .values({ worker_id: workerId, host: hostname(), pid: process.pid })
    .onConflict((conflict) => conflict.column('worker_id').doUpdateSet({ seen_at: sql`excluded.seen_at` }))
    .execute();
}

export async function removeWorker(db: Database, workerId: string): Promise<void> {
  await deleteWhere(db, 'workers', { workerId }).execute();
}

interface LiveWorker {
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

// A worker that is paused keeps its row locks, which block the next attempt of the task. Therefore,
// each transaction names its session after the attempt. When an attempt has lost its lease, its
// session is ended. The attempt could not have committed anyway, because of the fence. Sessions of
// exports only read, but they are also ended, because their snapshots would delay vacuum. Sessions
// of other databases are not ended, because tasks there may have the same numbers.

export function taskSessionName({ kind, taskId, attempt }: TaskClaim): string {
  return `${sessionPrefix({ kind, taskId })}${attempt}`;
}

function sessionPrefix({ kind, taskId }: Pick<TaskClaim, 'kind' | 'taskId'>): string {
  return `sluice ${kind} ${taskId}:`;
}

/**
 * Runs `work` in a transaction of the attempt. Until the transaction ends, the session has the name
 * of the attempt, and the change log attributes changes to the load of the task. With
 * `isAsynchronous`, the commit returns before the data is on disk. Use it only if the work's ledger
 * row is in the same transaction. A crash then loses both the rows and the ledger row, and the work
 * is repeated.
 */
export function inTaskTransaction<T>(
  pool: pg.Pool,
  claim: TaskClaim,
  work: (transaction: Transaction) => Promise<T>,
  { isAsynchronous = false } = {},
): Promise<T> {
  const settings: LocalSettings = {
    application_name: taskSessionName(claim),
    'sluice.load_id': claim.kind === 'chunk' || claim.kind === 'finish' ? String(claim.subjectId) : '',
  };
  return inTransaction(pool, work, isAsynchronous ? { ...settings, synchronous_commit: 'off' } : settings);
}

/** Ends the session of this attempt, which rolls back its transaction. */
export async function endOwnSession(db: Database, claim: TaskClaim): Promise<void> {
  await endSessions(db, sql`application_name = ${taskSessionName(claim)}`);
}

export async function endTaskSessions(db: Database, task: Pick<TaskClaim, 'kind' | 'taskId'>): Promise<void> {
  await endSessions(db, sql`starts_with(application_name, ${sessionPrefix(task)})`);
}

/** Ends only sessions of earlier attempts, because a later attempt may already be running. */
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
 * Ends the sessions of attempts that no longer own their task. Returns the number of ended
 * sessions. A transaction that began after this statement is not ended, because it may belong to a
 * newer attempt. The statement does not wait for row locks, which a lost session may still hold.
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

async function endSessions(db: Database, condition: ReturnType<typeof sql>): Promise<number> {
  const { rows } = await sql`
    select pg_terminate_backend(pid)
    from pg_stat_activity
    where datname = current_database()
      and usename = current_user
      and pid <> pg_backend_pid()
      and ${condition}`.execute(db);
  return rows.length;
}

// Returns the end of a new lease by the database's clock. If the clock is behind after a failover,
// existing leases seem to end far in the future. Therefore, `isLapsed` includes leases that end
// more than two lease lengths from now.
export function leaseFor(): RawBuilder<Date> {
  return sql<Date>`now() + ${LEASE_MS} * interval '1 millisecond'`;
}

/** Condition that a task has a lease and that the lease has lapsed. */
export const isLapsed = sql<boolean>`(
  lease_until < now() or lease_until > now() + 2 * ${LEASE_MS} * interval '1 millisecond'
)`;

/**
 * Condition that the last notice is missing, old, or dated in the future because the clock was set
 * back.
 */
export function isNotifiedLongAgo(olderThanMs: number, column: string): RawBuilder<boolean> {
  const at = sql.ref(column);
  const age = sql`${olderThanMs} * interval '1 millisecond'`;
  return sql<boolean>`(${at} is null or ${at} < now() - ${age} or ${at} > now() + ${age})`;
}
