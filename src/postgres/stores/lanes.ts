import { type RawBuilder, sql } from 'kysely';
import { MAX_COUNTED_AHEAD } from '../../domain/limits.ts';
import type { Database } from '../database.ts';

/* A lane is an environment: its loads and deletions run one after another, in the order of acceptance. */

/** Serialises decisions about one lane; the class half of a two-key advisory lock. */
const laneLock = 0x4c414e45;

/** Keeps others from starting, retrying or adding a job in the lane until the transaction ends. */
export async function lockLane(db: Database, environmentId: number): Promise<void> {
  await sql`select pg_advisory_xact_lock(${laneLock}, ${environmentId})`.execute(db);
}

/** The load or deletion that is next in a lane. */
export interface LaneHead {
  readonly kind: 'load' | 'deletion';
  readonly id: number;
}

/** Finds the job to start: the next one, if none runs; else `null`. Call it in the transaction that starts it. */
export async function findLaneHead(db: Database, environmentId: number): Promise<LaneHead | null> {
  await lockLane(db, environmentId);
  const { rows } = await sql<LaneHead & { status: string }>`
    select kind, id, status
    from background_jobs
    where environment_id = ${environmentId} and status in ('queued', 'processing') and lane_position is not null
    order by status = 'processing' desc, lane_position
    limit 1`.execute(db);
  const [next] = rows;
  // A running job sorts first: then nothing starts.
  return next?.status === 'queued' ? { kind: next.kind, id: next.id } : null;
}

/** Lists the environments in which something waits and nothing runs. */
export async function idleLanes(db: Database): Promise<number[]> {
  const { rows } = await sql<{ environmentId: number }>`
    select environment_id as "environmentId"
    from background_jobs
    where status in ('queued', 'processing') and lane_position is not null
    group by environment_id
    having not bool_or(status = 'processing')`.execute(db);
  return rows.map((row) => row.environmentId);
}

/**
 * Counts the unfinished loads and deletions before a row of `table`, up to MAX_COUNTED_AHEAD; what runs stands before all that
 * waits. It reads so many entries of an index: for one job, not for each of a list.
 */
export function aheadInLane(table: 'loads' | 'deletions'): RawBuilder<number> {
  const own = (column: string) => sql.ref(`${table}.${column}`);
  return sql<number>`case when ${own('status')} = 'queued' then (
    select count(*)
    from (
      select 1
      from background_jobs other
      where other.environment_id = ${own('environment_id')}
        and other.status in ('queued', 'processing')
        and other.lane_position < ${own('lane_position')}
      limit ${sql.lit(MAX_COUNTED_AHEAD)}
    ) others
  ) else 0 end`;
}
