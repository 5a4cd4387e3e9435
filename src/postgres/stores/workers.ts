import { hostname } from 'node:os';
import { sql } from 'kysely';
import type pg from 'pg';
import { WORKER_ALIVE_SECONDS } from '../../domain/limits.ts';
import type { Database } from '../database.ts';
import { withTimeout } from '../pool.ts';

const timeoutMs = 3_000;

/* Signs of life of the worker processes. */

/** Says that a worker lives; `workerId` is its own from start to end. */
export async function showWorker(db: Database, workerId: string): Promise<void> {
  await db
    .insertInto('workers')
    .values({ worker_id: workerId, host: hostname(), pid: process.pid })
    .onConflict((conflict) => conflict.column('worker_id').doUpdateSet({ seen_at: sql`excluded.seen_at` }))
    .execute();
}

export async function removeWorker(db: Database, workerId: string): Promise<void> {
  await db.deleteFrom('workers').where('worker_id', '=', workerId).execute();
}

export interface LiveWorker {
  readonly host: string;
  readonly pid: number;
  readonly startedAt: Date;
}

export async function readLiveWorkers(watch: pg.Pool): Promise<LiveWorker[]> {
  const statement = `
    select host, pid, started_at as "startedAt"
    from workers
    where seen_at > now() - interval '${WORKER_ALIVE_SECONDS} s'
    order by started_at, worker_id`;
  return (await watch.query<LiveWorker>(withTimeout(statement, timeoutMs))).rows;
}

export async function countLiveWorkers(db: Database): Promise<number> {
  const row = await db
    .selectFrom('workers')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('seen_at', '>', sql<Date>`now() - ${WORKER_ALIVE_SECONDS} * interval '1 second'`)
    .executeTakeFirstOrThrow();
  return row.count;
}

const forgottenHours = 1;

/** Workers that were killed stay in the table until then. */
export async function forgetOldWorkers(db: Database): Promise<void> {
  await db
    .deleteFrom('workers')
    .where('seen_at', '<', sql<Date>`now() - ${forgottenHours} * interval '1 hour'`)
    .execute();
}
