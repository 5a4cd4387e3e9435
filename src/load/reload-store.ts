import { sql } from 'kysely';
import { type Database, prepared } from '../postgres/database.ts';

/*
 * If an earlier load of the same file added its events, and no events of the environment have been
 * removed since, a second load adds nothing. Its result is known without reading the file.
 */

/**
 * SQL expression for queries of `loads`. Counts how often events of the environment were removed.
 */
export const eventRemovals = sql<number>`coalesce(
  (select r.removals from event_removals r where r.environment_id = loads.environment_id),
  0
)`;

export const isOfKnownFile = sql<boolean>`exists (
  select 1 from load_lineage n where n.load_id = loads.load_id and n.duplicate_of is not null
)`.as('isOfKnownFile');

/**
 * If the load would add nothing, counts its records as unchanged and its chunks as done. Must be
 * called in the transaction that starts the load. A removal of events that is not committed yet
 * takes effect after the load.
 */
export async function countReload(db: Database, loadId: number): Promise<void> {
  await sql`
    with earlier as (
      select earlier.load_id, earlier.has_event_types
      from loads
      join load_lineage using (load_id)
      join loads earlier
        on earlier.environment_id = loads.environment_id and earlier.job_id = load_lineage.duplicate_of
      where loads.load_id = ${loadId}
        and loads.pass = 'load'
        and loads.preset is null
        and loads.chunks_done = 0
        and earlier.status = 'completed'
        and earlier.total_rows = loads.total_rows
        and earlier.rows_inserted + earlier.rows_unchanged = loads.total_rows
        and earlier.event_removals = ${eventRemovals}
        and exists (select 1 from load_kinds k where k.load_id = earlier.load_id)
        and not exists (
          select 1
          from load_kinds k
          where k.load_id = earlier.load_id and k.kind in ('identify_user', 'identify_company', 'unknown')
        )
    ),
    chunks as (
      update load_chunks
      set
        done_at = clock_timestamp(),
        rows_inserted = 0,
        rows_updated = 0,
        rows_unchanged = row_count,
        rows_removed = 0,
        rows_superseded = 0,
        rows_rejected = 0
      from earlier
      where load_chunks.load_id = ${loadId}
    ),
    kinds as (
      insert into load_kinds (load_id, kind, rows_unchanged)
      select ${loadId}, k.kind, k.rows_inserted + k.rows_unchanged
      from load_kinds k
      join earlier using (load_id)
    )
    update loads
    set
      chunks_done = chunk_count,
      rows_read = total_rows,
      rows_unchanged = total_rows,
      has_event_types = earlier.has_event_types,
      repeats_resolved_at = now()
    from earlier
    where loads.load_id = ${loadId}`.execute(prepared(db));
}
