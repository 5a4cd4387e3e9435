import { sql } from 'kysely';
import { Fault } from '../../domain/errors.ts';
import { keepsPlan, type LoadPass, type OnDrift } from '../../domain/load.ts';
import type { DueTask } from '../../domain/task.ts';
import type { Database } from '../database.ts';
import { insertChunkTasks, planBegins } from './loads.ts';
import { forgetPlannedRows } from './plans.ts';
import { forgetRepeats } from './repeats.ts';

/*
 * A load may pass over its file more than once: to plan and then, when it is asked to, to load; to see whether a guard is hit, and then to
 * load; from the beginning, because it is retried. Every pass starts from nothing: what the one before counted and refused is forgotten.
 */

/**
 * A completed plan → queued, behind all that is accepted, to be loaded; also one that was to be and was refused, or cancelled before it began.
 * False if it is none, or its file is gone. Call it in the transaction that holds the lane's lock.
 */
export async function queueApply(
  db: Database,
  environmentId: number,
  jobId: string,
  onDrift: OnDrift,
): Promise<boolean> {
  const load = await db
    .updateTable('loads')
    .set({
      status: 'queued',
      pass: 'apply',
      begins_anew: true,
      on_drift: onDrift,
      applied_at: sql`now()`,
      work_started_at: null,
      ended_at: null,
      failure_code: null,
      failure_message: null,
      lane_position: sql`nextval('sluice.lane_positions')`,
    })
    .where('environment_id', '=', environmentId)
    .where('job_id', '=', jobId)
    .where('plan', 'is not', null)
    .where('file_ref', 'is not', null)
    .where((eb) =>
      eb.or([
        eb.and([eb('pass', '=', 'plan'), eb('status', '=', 'completed')]),
        eb.and([eb('pass', '=', 'apply'), eb('status', 'in', ['failed', 'cancelled'])]),
      ]),
    )
    .returning('load_id')
    .executeTakeFirst();
  return load !== undefined;
}

/** What is to begin. */
export interface Beginning {
  readonly pass: LoadPass;
  readonly onDrift: OnDrift | null;
}

/** Null if the load does not run. */
export async function readBeginning(db: Database, loadId: number): Promise<Beginning | null> {
  const row = await db
    .selectFrom('loads')
    .select(['pass', 'on_drift'])
    .where('load_id', '=', loadId)
    .where('status', '=', 'processing')
    .executeTakeFirst();
  return row === undefined ? null : { pass: row.pass as LoadPass, onDrift: row.on_drift as OnDrift | null };
}

/**
 * Forgets what the last pass left and begins `pass`, with a task for each chunk, of which those are returned that the queue is to be notified of.
 * Call it in the transaction that ends the task of whoever does it.
 */
export async function beginPass(db: Database, loadId: number, pass: LoadPass): Promise<DueTask[]> {
  const load = await db
    .updateTable('loads')
    .set({
      pass,
      begins_anew: false,
      work_started_at: sql`now()`,
      work_rows_before: 0,
      chunks_done: 0,
      rows_read: 0,
      rows_inserted: 0,
      rows_updated: 0,
      rows_unchanged: 0,
      rows_superseded: 0,
      rows_rejected: 0,
      repeats_resolved_at: null,
      has_event_types: false,
      ...(keepsPlan(pass) && {
        plan: null,
        plan_ended_at: null,
        applied_at: null,
        on_drift: null,
        ...planBegins,
      }),
    })
    .where('load_id', '=', loadId)
    .where('status', '=', 'processing')
    .returning(['job_id as jobId', 'request_id as requestId', 'environment_id as environmentId'])
    .executeTakeFirst();
  if (load === undefined) throw new Fault(`load ${loadId} does not run`);
  await db
    .updateTable('load_chunks')
    .set({
      done_at: null,
      rows_inserted: null,
      rows_updated: null,
      rows_unchanged: null,
      rows_superseded: null,
      rows_rejected: null,
      attempts: 0,
      losses: 0,
    })
    .where('load_id', '=', loadId)
    .execute();
  await db.deleteFrom('load_rejects').where('load_id', '=', loadId).execute();
  await db.deleteFrom('load_kinds').where('load_id', '=', loadId).execute();
  await forgetRepeats(db, [loadId]);
  if (keepsPlan(pass)) {
    await db.deleteFrom('planned_chunks').where('load_id', '=', loadId).execute();
    await forgetPlannedRows(db, [loadId]);
  }
  return insertChunkTasks(db, loadId, load);
}

/**
 * How many profiles differ from what the plan of the load found: those that it would write, and of those that it found unchanged the ones
 * that have been changed since. Of the latter it knows the hashes of their keys; they are looked for among what was updated lately, by
 * transactions that were not over when the plan began.
 */
export async function countDrift(db: Database, loadId: number): Promise<number> {
  const { rows } = await sql<{ drifted: number }>`
    with plan as materialized (
      select environment_id, plan_since, plan_horizon
      from loads
      where load_id = ${loadId}
    ),
    of_users as (
      select r.key
      from planned_rows r
      where r.load_id = ${loadId} and r.entity = 'users'
        and coalesce(
          (
            select r.is_new or ${differs} or p.company_id is distinct from r.company_before
            from users p
            where p.environment_id = (select environment_id from plan) and p.user_id = r.key
          ),
          not r.is_new
        )
      union
      select p.user_id
      from users p
      where ${writtenSince} and ${isUnchanged(loadId, 'users', 'user_id')}
    ),
    of_companies as (
      select r.key
      from planned_rows r
      where r.load_id = ${loadId} and r.entity = 'companies'
        and coalesce(
          (
            select r.is_new or ${differs}
            from companies p
            where p.environment_id = (select environment_id from plan) and p.company_id = r.key
          ),
          not r.is_new
        )
      union
      select p.company_id
      from companies p
      where ${writtenSince} and ${isUnchanged(loadId, 'companies', 'company_id')}
    )
    select (select count(*) from of_users) + (select count(*) from of_companies) as drifted`.execute(db);
  return rows[0]?.drifted ?? 0;
}

const differs = sql`
  p.metadata is distinct from r.before
  or (r.seen_before is not null and (p.times is distinct from r.times_before or p.last_seen_at <> r.seen_before))`;

/** xmin has 32 bits: it stands for the last transaction of that number. */
const writtenSince = sql`
  p.environment_id = (select environment_id from plan)
  and p.updated_at >= (select plan_since from plan)
  and (
    pg_snapshot_xmax(pg_current_snapshot())::text::bigint
    - ((pg_snapshot_xmax(pg_current_snapshot())::text::bigint - p.xmin::text::bigint) & 4294967295)
  ) >= (select plan_horizon::text::bigint from plan)`;

const isUnchanged = (loadId: number, entity: string, id: string) => sql`
  hashtextextended(p.${sql.ref(id)}, 0) & -4 in (
    select hash & -4
    from load_chunk_keys k, unnest(k.unchanged) hash
    where k.load_id = ${loadId} and k.entity = ${entity}
  )`;
