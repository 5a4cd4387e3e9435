import { sql } from 'kysely';
import { addOutcomes, countedKinds, noOutcomes, type OutcomesByKind } from '../../domain/load.ts';
import { changedBy, columnOf, type Database } from '../../postgres/database.ts';

/*
 * Finds events that occur in several chunks of a load. Chunks are merged independently of each
 * other. Each chunk numbers its equal events from 0. If another chunk has added an event, the event
 * looks as if it had been stored before the load. When all chunks are done, `replay.ts`
 * corrects this.
 */

/**
 * Stores the events to replay. These are events that an earlier chunk also contains. An event is
 * also replayed if a later chunk had already stored an event with the same given id. Only dry runs,
 * and loads in which a chunk found an existing event, have such events. Must be called in the
 * transaction that renews the claim.
 */
export async function recordEventRepeats(db: Database, loadId: number): Promise<void> {
  await sql`set local work_mem = '64MB'`.execute(db);
  await sql`
    with occurrences as (
      select k.chunk_no, hash, true as is_written
      from load_chunk_keys k, unnest(k.written) hash
      where k.load_id = ${loadId} and k.entity = 'events' and (${mayHaveRepeats(loadId)})
      union all
      select k.chunk_no, hash, false
      from load_chunk_keys k, unnest(k.unchanged) hash
      where k.load_id = ${loadId} and k.entity = 'events' and (${mayHaveRepeats(loadId)})
    ),
    repeated as (
      select hash from occurrences group by hash having min(chunk_no) < max(chunk_no)
    ),
    in_chunk as (
      select hash, chunk_no, count(*) as occurrences, bool_or(is_written) as is_written
      from occurrences join repeated using (hash)
      group by hash, chunk_no
    ),
    placed as (
      select
        hash,
        chunk_no,
        is_written,
        coalesce(sum(occurrences) over earlier, 0) as rows_before,
        bool_or(is_written) over (partition by hash) as is_of_load
      from in_chunk
      window earlier as (partition by hash order by chunk_no rows between unbounded preceding and 1 preceding)
    )
    insert into load_event_replays (load_id, chunk_no, key_hash, rows_before, is_written)
    select ${loadId}, chunk_no, hash, rows_before, is_written
    from placed
    where rows_before > 0 or (is_new(hash) and is_of_load and not is_written)
    on conflict do nothing`.execute(db);
}

const mayHaveRepeats = (loadId: number) => sql`
  select l.dry_run or exists (${unchangedEvents(loadId)}) from loads l where l.load_id = ${loadId}`;

/** Returns a row if a chunk of the load found an event that already existed. */
export const unchangedEvents = (loadId: unknown) => sql`
  select 1
  from load_kinds n
  where n.load_id = ${loadId} and n.kind not in ('identify_user', 'identify_company', 'unknown') and n.rows_unchanged > 0`;

export function eventChunksToReplay(db: Database, loadId: number): Promise<number[]> {
  return columnOf<number>(db)`
    select distinct chunk_no from load_event_replays where load_id = ${loadId} order by chunk_no`;
}

export interface EventRepeat {
  readonly rowsBefore: number;
  readonly isWritten: boolean;
}

/** Events to replay, by the hash of their `eventKey`. */
export async function readEventRepeats(
  db: Database,
  loadId: number,
  chunkNo: number,
): Promise<ReadonlyMap<bigint, EventRepeat>> {
  const { rows } = await sql<{ hash: string; rowsBefore: number; isWritten: boolean }>`
    select key_hash::text as hash, rows_before as "rowsBefore", is_written as "isWritten"
    from load_event_replays
    where load_id = ${loadId} and chunk_no = ${chunkNo}`.execute(db);
  return new Map(rows.map(({ hash, ...repeat }) => [BigInt(hash), repeat]));
}

export type Corrections = OutcomesByKind;

/** Returns false if the replay of the chunk has already ended. */
export async function endEventReplay(
  db: Database,
  loadId: number,
  chunkNo: number,
  corrections: Corrections,
): Promise<boolean> {
  const deletedRows = await changedBy(db)`
    delete from load_event_replays where load_id = ${loadId} and chunk_no = ${chunkNo}`;
  if (deletedRows === 0) return false;
  const kinds = countedKinds.map((kind) => ({ kind, ...corrections[kind] }));
  const sum = countedKinds.reduce((total, kind) => addOutcomes(total, corrections[kind]), noOutcomes);
  await sql`
    with corrected as (
      update load_kinds k
      set
        rows_inserted = rows_inserted + c.inserted,
        rows_unchanged = rows_unchanged + c.unchanged,
        rows_superseded = rows_superseded + c.superseded
      from json_to_recordset(${JSON.stringify(kinds)}) as c (
        kind text, inserted bigint, unchanged bigint, superseded bigint
      )
      where k.load_id = ${loadId} and k.kind = c.kind
    ),
    placed as (
      update load_chunks
      set positions = positions || sluice.current_position()
      where load_id = ${loadId} and chunk_no = ${chunkNo}
    )
    update loads
    set
      rows_inserted = rows_inserted + ${sum.inserted},
      rows_unchanged = rows_unchanged + ${sum.unchanged},
      rows_superseded = rows_superseded + ${sum.superseded}
    where load_id = ${loadId}`.execute(db);
  return true;
}
