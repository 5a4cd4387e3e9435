import { type RawBuilder, sql } from 'kysely';
import { SUSPECT_LOSSES } from '../../domain/limits.ts';
import type { Database } from '../database.ts';
import { isDue } from './lease.ts';

/*
 * A job in the queue says that something is due, not what: whoever takes one does what is next here. The queue is first
 * come, first served, and would give all its workers to whoever asked for most. Here environments take turns: first the one
 * with the fewest tasks under way, among equals the one that was served longest ago. So no environment gets another task
 * while one that has fewer under way waits, and none needs a bound of its own.
 *
 * Tasks that lost their worker before (`SUSPECT_LOSSES`) are left out: see `findSuspect`.
 */
const fairly = (served: readonly number[]): RawBuilder<unknown> =>
  sql`under_way, array_position(${[...served]}::integer[], environment_id) nulls first`;

/** What is next in the lane of an environment. */
export interface LaneTask {
  readonly kind: 'chunk' | 'finish' | 'deletion';
  readonly environmentId: number;
  /** Of the load or deletion. */
  readonly id: number;
}

/** Up to `limit` tasks of lanes, of as many environments: others may take the first ones meanwhile. */
export async function findLaneTasks(
  db: Database,
  served: readonly number[],
  limit: number,
): Promise<LaneTask[]> {
  const { rows } = await sql<LaneTask>`
    with running as (
      select load_id, count(*) as under_way
      from load_chunks
      where state = 'running'
      group by load_id
    ),
    tasks as (
      select
        environment_id,
        lane_position,
        case when chunks_done = chunk_count then 'finish' else 'chunk' end as kind,
        load_id as id,
        coalesce(under_way, 0) as under_way
      from loads
      left join running using (load_id)
      where status = 'processing'
        and case
          when chunks_done = chunk_count then
            finish_lease_until is null and ${isDue('finish_due_at')} and finish_losses < ${SUSPECT_LOSSES}
          else exists (
            select
            from load_chunks c
            where c.load_id = loads.load_id
              and c.state = 'pending'
              and c.dispatched_at is not null
              and c.losses < ${SUSPECT_LOSSES}
          )
        end
      union all
      select environment_id, lane_position, 'deletion', deletion_id, 0
      from deletions
      where status = 'processing' and lease_until is null and ${isDue('due_at')} and losses < ${SUSPECT_LOSSES}
    )
    select kind, environment_id as "environmentId", id
    from tasks
    order by ${fairly(served)}, lane_position
    limit ${limit}`.execute(db);
  return rows;
}

/** The export that is next; null if none is due. */
export async function findNextExport(
  db: Database,
  served: readonly number[],
): Promise<{ readonly exportId: number; readonly environmentId: number } | null> {
  const { rows } = await sql<{ exportId: number; environmentId: number }>`
    select export_id as "exportId", environment_id as "environmentId"
    from (
      select
        environment_id,
        min(export_id) filter (
          where lease_until is null and ${isDue('due_at')} and losses < ${SUSPECT_LOSSES}
        ) as export_id,
        count(*) filter (where lease_until is not null) as under_way
      from exports
      where status in ('queued', 'processing')
      group by environment_id
    ) waiting
    where export_id is not null
    order by ${fairly(served)}, export_id
    limit 1`.execute(db);
  return rows[0] ?? null;
}

/** A task that lost its worker before, and may be what ends it. */
export type Suspect =
  | { readonly kind: 'chunk'; readonly id: number; readonly chunkNo: number }
  | { readonly kind: 'finish' | 'deletion' | 'export'; readonly id: number; readonly chunkNo: null };

/**
 * Any task that is due and lost its worker `SUSPECT_LOSSES` times or more. Whoever does one does it where it can harm no
 * other; they are taken in no order, so that none of them is always first.
 */
export async function findSuspect(db: Database): Promise<Suspect | null> {
  const { rows } = await sql<Suspect>`
    select kind, id, chunk_no as "chunkNo"
    from (
      select 'chunk' as kind, load_id as id, chunk_no
      from load_chunks
      join loads using (load_id)
      where status = 'processing' and state = 'pending' and losses >= ${SUSPECT_LOSSES}
      union all
      select 'finish', load_id, null
      from loads
      where status = 'processing'
        and chunks_done = chunk_count
        and finish_lease_until is null
        and ${isDue('finish_due_at')}
        and finish_losses >= ${SUSPECT_LOSSES}
      union all
      select 'deletion', deletion_id, null
      from deletions
      where status = 'processing' and lease_until is null and ${isDue('due_at')} and losses >= ${SUSPECT_LOSSES}
      union all
      select 'export', export_id, null
      from exports
      where status in ('queued', 'processing')
        and lease_until is null
        and ${isDue('due_at')}
        and losses >= ${SUSPECT_LOSSES}
    ) suspects
    order by random()
    limit 1`.execute(db);
  return rows[0] ?? null;
}
