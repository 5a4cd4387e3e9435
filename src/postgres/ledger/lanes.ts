import { type RawBuilder, sql } from 'kysely';
import type { JobIdentity } from '../../domain/job-fields.ts';
import { MAX_COUNTED_AHEAD } from '../../domain/limits.ts';
import type { Database } from '../database.ts';

/** Serialises decisions about one lane; the class half of a two-key advisory lock. */
const laneLock = 0x4c414e45;

/** Who runs now: a load, or a deletion, by the id that the workers know it by. */
export interface LaneHead extends JobIdentity {
  readonly kind: 'load' | 'deletion';
  readonly id: number;
}

/** Until the transaction ends nobody starts, retries or puts a deletion into the lane. */
export async function lockLane(db: Database, environmentId: number): Promise<void> {
  await sql`select pg_advisory_xact_lock(${laneLock}, ${environmentId})`.execute(db);
}

/**
 * A lane is an environment: its loads and deletions run one after another, in the order of acceptance. Starts the next
 * one if none runs; returns it, or null if there is nothing to start. Call it inside a transaction.
 */
export async function startNext(db: Database, environmentId: number): Promise<LaneHead | null> {
  await lockLane(db, environmentId);
  const { rows } = await sql<Pick<LaneHead, 'kind' | 'id'> & { status: string }>`
    select kind, id, status
    from (
      select 'load' as kind, load_id as id, status, lane_position
      from loads
      where environment_id = ${environmentId} and status in ('queued', 'processing')
      union all
      select 'deletion', deletion_id, status, lane_position
      from deletions
      where environment_id = ${environmentId} and status in ('queued', 'processing')
    ) lane
    order by status = 'processing' desc, lane_position
    limit 1`.execute(db);
  const [next] = rows;
  // What runs sorts first: then nothing starts.
  if (next?.status !== 'queued') return null;
  const { kind, id } = next;
  // It may have been cancelled since it was looked at.
  const job = await (kind === 'load' ? startLoad(db, id) : startDeletion(db, id));
  return job && { kind, id, ...job };
}

const started = {
  status: 'processing',
  started_at: sql<Date>`coalesce(started_at, now())`,
  dispatched_at: sql<Date>`now()`,
};

const identity = ['job_id as jobId', 'request_id as requestId'] as const;

async function startLoad(db: Database, loadId: number): Promise<JobIdentity | null> {
  const row = await db
    .updateTable('loads')
    .set(started)
    .where('load_id', '=', loadId)
    .where('status', '=', 'queued')
    .returning(identity)
    .executeTakeFirst();
  return row ?? null;
}

async function startDeletion(db: Database, deletionId: number): Promise<JobIdentity | null> {
  const row = await db
    .updateTable('deletions')
    .set(started)
    .where('deletion_id', '=', deletionId)
    .where('status', '=', 'queued')
    .returning(identity)
    .executeTakeFirst();
  return row ?? null;
}

/** Environments in which something waits and nothing runs. */
export async function idleLanes(db: Database): Promise<number[]> {
  const { rows } = await sql<{ environmentId: number }>`
    select environment_id as "environmentId"
    from (
      select environment_id, status
      from loads
      where status in ('queued', 'processing')
      union all
      select environment_id, status
      from deletions
      where status in ('queued', 'processing')
    ) lanes
    group by environment_id
    having not bool_or(status = 'processing')`.execute(db);
  return rows.map((row) => row.environmentId);
}

/**
 * Unfinished loads and deletions before a row of `table`, at most MAX_COUNTED_AHEAD of each; what runs stands before all that
 * waits. Reads so many entries of an index: for one job, not for each of a list.
 */
export function aheadInLane(table: 'loads' | 'deletions'): RawBuilder<number> {
  const own = (column: string) => sql.ref(`${table}.${column}`);
  const before = (other: 'loads' | 'deletions') => sql`(
    select count(*)
    from (
      select
      from ${sql.table(other)} other
      where other.environment_id = ${own('environment_id')}
        and other.status in ('queued', 'processing')
        and other.lane_position < ${own('lane_position')}
      limit ${sql.lit(MAX_COUNTED_AHEAD)}
    ) others
  )`;
  return sql<number>`(
    case when ${own('status')} = 'queued' then ${before('loads')} + ${before('deletions')} else 0 end
  )`;
}
