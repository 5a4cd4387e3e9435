import { type Selectable, sql } from 'kysely';
import type { ChunkRange } from '../../domain/chunk.ts';
import type { JobIdentity } from '../../domain/job-fields.ts';
import { MAX_CHUNK_LOSSES, SUSPECT_LOSSES } from '../../domain/limits.ts';
import type { Database } from '../database.ts';
import type { LoadChunks, Loads } from '../schema.ts';
import { afterPause, isDue, isLapsed, isToldLongAgo, leaseFor } from './lease.ts';

/** One attempt at one chunk. The attempt number fences every write it makes. */
export interface ChunkClaim extends ChunkRange, JobIdentity {
  readonly loadId: number;
  readonly chunkNo: number;
  readonly attempt: number;
}

export interface DueChunk {
  readonly chunkNo: number;
  readonly attempt: number;
}

/**
 * Takes a chunk for this worker; null if it is done, taken, or its load no longer runs. One whose worker vanished counts as
 * lost by that; the loss that is one too many is left to `rescueChunks`, which fails the load.
 */
export async function claimChunk(db: Database, loadId: number, chunkNo: number): Promise<ChunkClaim | null> {
  const row = await db
    .updateTable('load_chunks')
    .from('loads')
    .whereRef('loads.load_id', '=', 'load_chunks.load_id')
    .where('loads.status', '=', 'processing')
    .set((eb) => ({
      state: 'running',
      attempt: eb('attempt', '+', 1),
      lease_until: leaseFor(),
      losses: sql<number>`losses + (state = 'running')::int`,
    }))
    .where('load_chunks.load_id', '=', loadId)
    .where('chunk_no', '=', chunkNo)
    .where((eb) =>
      eb.or([
        eb('state', '=', 'pending'),
        eb.and([
          eb('state', '=', 'running'),
          isLapsed('lease_until'),
          eb('losses', '<', MAX_CHUNK_LOSSES - 1),
        ]),
      ]),
    )
    .returning(claimed)
    .executeTakeFirst();
  return row === undefined ? null : toClaim(row);
}

/** Takes the first chunk of a load that waits and that the queue was told of; null if there is none, or the load no longer runs. */
export async function claimNextChunk(db: Database, loadId: number): Promise<ChunkClaim | null> {
  const row = await db
    .updateTable('load_chunks')
    .from('loads')
    .whereRef('loads.load_id', '=', 'load_chunks.load_id')
    .where('loads.status', '=', 'processing')
    .set((eb) => ({ state: 'running', attempt: eb('attempt', '+', 1), lease_until: leaseFor() }))
    .where('load_chunks.load_id', '=', loadId)
    .where('chunk_no', '=', (eb) =>
      eb
        .selectFrom('load_chunks as waiting')
        .select('waiting.chunk_no')
        .where('waiting.load_id', '=', loadId)
        .where('waiting.state', '=', 'pending')
        .where('waiting.dispatched_at', 'is not', null)
        .where('waiting.losses', '<', SUSPECT_LOSSES)
        .orderBy('waiting.chunk_no')
        .limit(1)
        .forUpdate()
        .skipLocked(),
    )
    .returning(claimed)
    .executeTakeFirst();
  return row === undefined ? null : toClaim(row);
}

const rangeColumns = ['byte_start', 'byte_end', 'first_row', 'first_line', 'row_count', 'oversized'] as const;

const claimed = [
  'load_chunks.load_id',
  'chunk_no',
  'attempt',
  'job_id',
  'request_id',
  ...rangeColumns,
] as const;

function toClaim(
  row: Pick<Selectable<LoadChunks>, 'load_id' | 'chunk_no' | 'attempt' | (typeof rangeColumns)[number]> &
    Pick<Selectable<Loads>, 'job_id' | 'request_id'>,
): ChunkClaim {
  return {
    loadId: row.load_id,
    jobId: row.job_id,
    requestId: row.request_id,
    chunkNo: row.chunk_no,
    attempt: row.attempt,
    ...toRange(row),
  };
}

function toRange(row: Pick<Selectable<LoadChunks>, (typeof rangeColumns)[number]>): ChunkRange {
  return {
    byteStart: row.byte_start,
    byteEnd: row.byte_end,
    firstRow: row.first_row,
    firstLine: row.first_line,
    rowCount: row.row_count,
    oversized: row.oversized,
  };
}

export async function readChunkRange(db: Database, loadId: number, chunkNo: number): Promise<ChunkRange> {
  const row = await db
    .selectFrom('load_chunks')
    .select(rangeColumns)
    .where('load_id', '=', loadId)
    .where('chunk_no', '=', chunkNo)
    .executeTakeFirstOrThrow();
  return toRange(row);
}

/** Prolongs the lease; false when the chunk is no longer ours. */
export async function renewChunk(db: Database, claim: ChunkClaim): Promise<boolean> {
  const row = await own(db, claim).set({ lease_until: leaseFor() }).returning('chunk_no').executeTakeFirst();
  return row !== undefined;
}

/** Gives a chunk back; it is due again at once. No attempt is held against it. `message`: what it ran into, if anything. */
export async function releaseChunk(db: Database, claim: ChunkClaim, message?: string): Promise<void> {
  await own(db, claim)
    .set({
      state: 'pending',
      lease_until: null,
      dispatched_at: null,
      ...(message !== undefined && { last_error: message }),
    })
    .execute();
}

/**
 * Gives a chunk back after an error that is not known to pass; returns how often that has happened. Due again at once, or,
 * if `later`, after a pause.
 */
export async function failChunk(
  db: Database,
  claim: ChunkClaim,
  message: string,
  later = false,
): Promise<number> {
  const row = await own(db, claim)
    .set((eb) => ({
      state: 'pending',
      lease_until: null,
      dispatched_at: null,
      ...(later && { due_at: afterPause }),
      failures: eb('failures', '+', 1),
      last_error: message,
    }))
    .returning('failures')
    .executeTakeFirst();
  return row?.failures ?? 0;
}

function own(db: Database, claim: ChunkClaim) {
  return db
    .updateTable('load_chunks')
    .where('load_id', '=', claim.loadId)
    .where('chunk_no', '=', claim.chunkNo)
    .where('attempt', '=', claim.attempt)
    .where('state', '=', 'running');
}

export interface ChunkTally {
  readonly inserted: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly superseded: number;
  readonly rejected: number;
}

export interface LoadProgress {
  readonly chunksDone: number;
  readonly chunkCount: number;
  readonly rejected: number;
  readonly maxErrors: number | null;
}

/**
 * The fence, the last statement of a chunk's transaction: the chunk is done and its tally counts, if this attempt
 * still owns it and the load still runs. Null otherwise; the caller must then roll back.
 */
export async function finishChunk(
  db: Database,
  claim: ChunkClaim,
  tally: ChunkTally,
): Promise<LoadProgress | null> {
  const { rows } = await sql<LoadProgress>`
    with done as (
      update load_chunks
      set
        state = 'done',
        lease_until = null,
        done_at = clock_timestamp(),
        rows_inserted = ${tally.inserted},
        rows_updated = ${tally.updated},
        rows_unchanged = ${tally.unchanged},
        rows_superseded = ${tally.superseded},
        rows_rejected = ${tally.rejected}
      where load_id = ${claim.loadId}
        and chunk_no = ${claim.chunkNo}
        and attempt = ${claim.attempt}
        and state = 'running'
      returning row_count
    )
    update loads
    set
      chunks_done = chunks_done + 1,
      rows_read = rows_read + done.row_count,
      rows_inserted = rows_inserted + ${tally.inserted},
      rows_updated = rows_updated + ${tally.updated},
      rows_unchanged = rows_unchanged + ${tally.unchanged},
      rows_superseded = rows_superseded + ${tally.superseded},
      rows_rejected = rows_rejected + ${tally.rejected}
    from done
    where loads.load_id = ${claim.loadId} and loads.status = 'processing'
    returning
      chunks_done as "chunksDone",
      chunk_count as "chunkCount",
      rows_rejected as rejected,
      max_errors as "maxErrors"`.execute(db);
  return rows[0] ?? null;
}

/** Up to `limit` chunks that wait and have not been told to the queue for `olderThanMs`; marks them told. */
export async function takeDueChunks(
  db: Database,
  loadId: number,
  olderThanMs: number,
  limit: number,
): Promise<DueChunk[]> {
  const { rows } = await sql<DueChunk>`
    update load_chunks
    set dispatched_at = now()
    where load_id = ${loadId}
      and chunk_no in (
        select chunk_no
        from load_chunks
        where load_id = ${loadId}
          and state = 'pending'
          and ${isDue('due_at')}
          and ${isToldLongAgo(olderThanMs)}
        order by chunk_no
        limit ${limit}
        for update skip locked
      )
    returning chunk_no as "chunkNo", attempt`.execute(db);
  return rows.sort((a, b) => a.chunkNo - b.chunkNo);
}

export interface LostChunk extends JobIdentity {
  readonly loadId: number;
  readonly chunkNo: number;
  /** How often it has been lost. */
  readonly losses: number;
}

/** Chunks whose worker gave no sign of life: due again. */
export async function rescueChunks(db: Database): Promise<LostChunk[]> {
  const { rows } = await sql<LostChunk>`
    update load_chunks c
    set state = 'pending', lease_until = null, dispatched_at = null, losses = losses + 1
    from loads l
    where l.load_id = c.load_id
      and l.status = 'processing'
      and c.state = 'running'
      and ${isLapsed('c.lease_until')}
    returning
      c.load_id as "loadId",
      l.job_id as "jobId",
      l.request_id as "requestId",
      c.chunk_no as "chunkNo",
      c.losses`.execute(db);
  return rows;
}
