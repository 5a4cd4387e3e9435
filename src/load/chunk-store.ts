import { type RawBuilder, sql } from 'kysely';
import {
  type ChunkRange,
  countedKinds,
  type Outcomes,
  type OutcomesByKind,
  recordOutcomes,
  type StoredFormat,
  toTally,
} from '../domain/load.ts';
import type { DueTask, TaskClaim } from '../domain/task.ts';
import { camel } from '../postgres/columns.ts';
import { type Database, prepared, selectWhere, updateWhere } from '../postgres/database.ts';
import { isOwn } from '../tasks/store.ts';

/** If all records of a load are refused, the load fails after this many records. */
export const MAX_REFUSED_AT_FIRST = 100_000;

const range = camel('byte_start', 'byte_end', 'first_row', 'first_line', 'row_count', 'oversized');

export function readChunkRange(db: Database, loadId: number, chunkNo: number): Promise<ChunkRange> {
  return selectWhere(prepared(db), 'load_chunks', { loadId, chunkNo })
    .select(range)
    .executeTakeFirstOrThrow();
}

export function listChunkRanges(db: Database, loadId: number): Promise<ChunkRange[]> {
  return selectWhere(db, 'load_chunks', { loadId }).select(range).orderBy('chunk_no').execute();
}

/**
 * Adds the position of the current transaction to those of a finished chunk. Must be called in each
 * transaction that writes rows of this chunk again.
 */
export async function recordWritten(db: Database, loadId: number, chunkNo: number): Promise<void> {
  await updateWhere(db, 'load_chunks', { loadId, chunkNo })
    .set({ positions: sql`positions || sluice.current_position()` })
    .execute();
}

function forCounts(
  write: (column: RawBuilder<unknown>, name: keyof Outcomes) => RawBuilder<unknown>,
): RawBuilder<unknown> {
  return sql.join(recordOutcomes.map((name) => write(sql.ref(`rows_${name}`), name)));
}

/**
 * SQL expression for queries of `loads`: format of the stored file. A file with a header is CSV.
 */
export const storedFormat = sql<StoredFormat>`case when loads.header is null then 'ndjson' else 'csv' end`;

/**
 * SQL expression for queries of `loads`: maximum number of refused records. `null` if the load has
 * no such limit.
 */
export const maxErrors = sql<
  number | null
>`(select g.max_errors from load_guards g where g.load_id = loads.load_id)`;

export interface ChunkTally extends Outcomes {
  /** Number of properties dropped for an empty name. */
  readonly dropped?: number;
  /** Counts by kind of record. `null` if the file cannot contain several kinds. */
  readonly kinds: OutcomesByKind | null;
  readonly hasEventTypes: boolean;
}

export interface LoadProgress {
  readonly rejected: number;
  readonly maxErrors: number | null;
  /** True if the caller must fail the load, because all records read so far were refused. */
  readonly isRefusedSoFar: boolean;
  readonly isCompleted: boolean;
  /**
   * The task that follows: the finish task after the last chunk, or the next chunk of an ordered
   * load.
   */
  readonly next: DueTask | null;
}

/**
 * Deletes the task of a chunk and adds its counts to those of the load. A load of a single chunk is
 * completed, unless it must fail or needs a finish task (such as for `endOptions`). Returns `null`
 * if another attempt owns the task or the load has ended. The caller must then roll back.
 */
export async function finishChunk(
  db: Database,
  claim: TaskClaim,
  tally: ChunkTally,
  endOptions: readonly string[],
): Promise<LoadProgress | null> {
  const isCompleted = sql`(
    loads.chunk_count = 1
    and not loads.dry_run
    and not loads.own_file
    and not loads.source_options ?| ${[...endOptions]}::text[]
    and not exists (select 1 from load_lineage n where n.load_id = loads.load_id and n.mends is not null)
    and loads.total_rows = done.row_count
    and ${tally.rejected} < done.row_count
    and ${tally.rejected} <= coalesce(${maxErrors}, ${tally.rejected})
  )`;
  const { rows } = await sql<LoadProgress>`
    with own as (
      delete from tasks where ${isOwn(claim)} returning attempt, losses, worker
    ),
    done as (
      update load_chunks
      set
        done_at = clock_timestamp(),
        attempts = own.attempt,
        losses = own.losses,
        worker = own.worker,
        positions = positions || sluice.current_position(),
        ${forCounts((column, name) => sql`${column} = ${tally[name]}`)}
      from own
      where load_id = ${claim.subjectId} and chunk_no = ${claim.part}
      returning row_count
    ),
    counted as (
      update loads
      set
        status = case when ${isCompleted} then 'completed' else status end,
        ended_at = case when ${isCompleted} then now() end,
        chunks_done = chunks_done + 1,
        rows_read = rows_read + done.row_count,
        dropped_properties = dropped_properties + ${tally.dropped ?? 0},
        ${forCounts((column, name) => sql`${column} = ${column} + ${tally[name]}`)},
        has_event_types = has_event_types or ${tally.hasEventTypes}
      from done
      where loads.load_id = ${claim.subjectId} and loads.status = 'processing'
      returning loads.*
    ),
    ${tally.kinds === null ? sql`` : countedByKind(tally.kinds)}
    ${finishing(isRefusedSoFar, claim.part)}`.execute(prepared(db));
  return rows[0] ?? null;
}

/**
 * True if all records read so far were refused. False for loads that have `max_errors` or that
 * write their own file. Also false after the last chunk, because the finish task then decides
 * whether the load fails.
 */
const isRefusedSoFar = sql`(
  chunks_done < chunk_count
  and ${maxErrors} is null
  and not own_file
  and rows_read >= ${MAX_REFUSED_AT_FIRST}
  and rows_rejected = rows_read
)`;

/**
 * Ends a chunk whose records were only checked. Sets the pass of the load to `validate`, because
 * the pass of a single-chunk load that exceeds `max_errors` is still `load`.
 */
export async function endValidation(
  db: Database,
  claim: TaskClaim,
  rejected: number,
): Promise<LoadProgress | null> {
  const { rows } = await sql<LoadProgress>`
    with own as (
      delete from tasks where ${isOwn(claim)} returning attempt
    ),
    counted as (
      update loads
      set
        pass = 'validate',
        chunks_done = chunks_done + 1,
        rows_read = rows_read + ${rejected},
        rows_rejected = rows_rejected + ${rejected}
      from own
      where loads.load_id = ${claim.subjectId} and loads.status = 'processing'
      returning loads.*
    ),
    ${finishing(sql`false`, claim.part)}`.execute(db);
  return rows[0] ?? null;
}

/** True if the chunks of the load run one after another, in file order. */
export const isOrdered = sql<boolean>`(loads.source_options ->> 'existing' is not distinct from 'keep')`;

/**
 * End of a query whose CTE `counted` contains the updated load. Inserts the load's next task, if
 * any.
 */
const finishing = (isRefused: RawBuilder<unknown>, chunkNo: number): RawBuilder<unknown> => sql`
    next as (
      insert into tasks (kind, subject_id, part, environment_id, job_id, request_id, notified_at)
      select
        case when chunks_done = chunk_count then 'finish' else 'chunk' end, load_id,
        case when chunks_done = chunk_count then 0 else ${chunkNo + 1} end,
        environment_id, job_id, request_id, now()
      from counted loads
      where (chunks_done = chunk_count or ${isOrdered}) and status = 'processing'
      returning task_id, kind
    )
    select
      rows_rejected as rejected,
      ${maxErrors} as "maxErrors",
      ${isRefused} as "isRefusedSoFar",
      status = 'completed' as "isCompleted",
      (select json_build_object('taskId', task_id, 'kind', kind, 'attempt', 0) from next) as next
    from counted loads`;

/**
 * Adds the outcomes of a chunk to the load's counts by kind. This cannot cause a deadlock, because
 * the transaction has already locked the row of the load.
 */
function countedByKind(kinds: OutcomesByKind) {
  const entries = countedKinds
    .filter((kind) => toTally(kinds[kind]).read > 0)
    .map((kind) => ({ kind, ...kinds[kind] }));
  return sql`
    counted_by_kind as (
      insert into load_kinds as k (load_id, kind, ${forCounts((column) => column)})
      select load_id, entries.*
      from counted, json_to_recordset(${JSON.stringify(entries)}) as entries (
        kind text, ${sql.raw(recordOutcomes.map((name) => `${name} bigint`).join())}
      )
      on conflict (load_id, kind) do update set
        ${forCounts((column) => sql`${column} = k.${column} + excluded.${column}`)}
    ),`;
}
