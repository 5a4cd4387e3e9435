import { createHash } from 'node:crypto';
import { type NotNull, sql } from 'kysely';
import { TransientError } from '../base/errors.ts';
import type { LoadEntity } from '../domain/entity.ts';
import type { Limits, VolumeGuard } from '../domain/guards.ts';
import {
  type ChunkRange,
  endedStatuses,
  HOLD_EXPIRED,
  keepsPlan,
  type LoadPass,
  type LoadType,
} from '../domain/load.ts';
import type { Preset, ReadAs, SourceOptions } from '../domain/source.ts';
import { type DueTask, type JobIdentity, type Origin, originColumns } from '../domain/task.ts';
import type { FileRef } from '../files/file-store.ts';
import type { CsvHeader } from '../formats/csv-header.ts';
import { camel, daysAgo, snake } from '../postgres/columns.ts';
import {
  changedBy,
  type Database,
  deleteWhere,
  prepared,
  rowsOf,
  selectWhere,
  updateWhere,
} from '../postgres/database.ts';
import { usesOfLoad } from '../postgres/uses.ts';
import { insertTask } from '../tasks/store.ts';
import { NOTIFIED_TASKS } from '../tasks/unnotified-store.ts';
import { isOrdered } from './chunk-store.ts';
import type { LoadContext } from './context.ts';
import { forgetRepeats } from './merge/repeats.ts';
import { beginPlan, forgetPlannedRows } from './plans/store.ts';
import { countReload, eventRemovals, isOfKnownFile } from './reload-store.ts';
import type { OwnFile } from './seam.ts';
import { recordUnused, takeReceived } from './upload-store.ts';

/*
 * Status of a load: queued → processing → completed | failed | cancelled. A failed, cancelled or
 * held load can be queued again. A load has tasks (`chunk`, then `finish`) only while it is
 * processing. Every transaction that ends a load first deletes its tasks and then updates the load.
 * A transaction that ends a chunk uses the same order, to prevent deadlocks.
 */

export interface NewLoad extends JobIdentity {
  readonly origin: Origin | null;
  readonly environmentId: number;
  readonly type: LoadType;
  readonly entity: LoadEntity;
  readonly filename: string;
  readonly fileSize: number;
  readonly sha256: string;
  /** The stored file. `null` if the load writes its file when it starts. */
  readonly fileRef: FileRef | null;
  /** `null` for NDJSON. */
  readonly header: CsvHeader | null;
  readonly columnMap: Readonly<Record<string, string>>;
  readonly preset: Preset | null;
  readonly source: SourceOptions;
  readonly readAs: ReadAs | null;
  readonly totalRows: number;
  readonly pass: LoadPass;
  readonly limits: Limits<number>;
  readonly guard: VolumeGuard | null;
  readonly duplicateOf: string | null;
  /** Job whose stored file is loaded again. `null` if the file was sent. */
  readonly fileOf: string | null;
  /**
   * True if the load writes its own file when it starts (see `LoadKind`). Such a load does not fail
   * if all its records are refused.
   */
  readonly ownFile: boolean;
  /** Load whose refused records this file corrects, or `null`. */
  readonly mends: number | null;
  readonly chunks: readonly ChunkRange[];
}

export function loadOf(db: Database, environmentId: number, jobId: string) {
  return selectWhere(db, 'loads', { environmentId, jobId });
}

/** Adds a load and its chunks, in the caller's transaction. */
export async function insertLoad(
  { db, records }: Pick<LoadContext, 'db' | 'records'>,
  load: NewLoad,
): Promise<number> {
  const { origin, sha256, header, columnMap, source, readAs, limits, guard, chunks, ...others } = load;
  const { duplicateOf, fileOf, mends, ...columns } = others;
  const { load_id, uses } = await prepared(db)
    .insertInto('loads')
    .values({
      ...snake(columns),
      ...originColumns(origin),
      sha256: Buffer.from(sha256, 'hex'),
      header: header === null ? null : JSON.stringify(header),
      column_map: JSON.stringify(columnMap),
      source_options: JSON.stringify(source),
      read_as: readAs && JSON.stringify(readAs, storable),
      begins_anew: columns.ownFile,
      file_cursor: fileCursor(fileOf),
      chunk_count: chunks.length,
    })
    .returning(['load_id', usesOfLoad])
    .executeTakeFirstOrThrow();
  const lineage = { duplicateOf, fileOf, mends };
  if (Object.values(lineage).some((other) => other !== null))
    await prepared(db)
      .insertInto('load_lineage')
      .values({ load_id, ...snake(lineage), file_at: fileAt(fileOf) })
      .execute();
  if (guard !== null || Object.values(limits).some((limit) => limit !== null)) {
    await prepared(db)
      .insertInto('load_guards')
      .values({ load_id, ...snake(limits), guard: guard && JSON.stringify(guard) })
      .execute();
  }
  if (records !== null && uses.includes(records.use))
    await records.accept(db, load_id, columns.environmentId);
  await insertChunks(db, load_id, chunks);
  return load_id;
}

/** SQL expression: time at which the file of the job `fileOf` was first accepted. */
const fileAt = (fileOf: string | null) =>
  sql<Date>`(select coalesce(n.file_at, l.accepted_at) from loads l left join load_lineage n using (load_id) where l.job_id = ${fileOf})`;

/** SQL expression: cursor in the log of changes when the file was first accepted. */
const fileCursor = (fileOf: string | null) =>
  sql<string>`coalesce((select file_cursor from loads where job_id = ${fileOf}), ${currentCursor})`;

interface NewOwnLoad
  extends Pick<NewLoad, 'jobId' | 'requestId' | 'origin' | 'environmentId' | 'type' | 'filename'> {
  readonly pass: LoadPass;
  readonly limits: Limits<number>;
}

/** Adds a load that writes its own file, in the caller's transaction. */
export function insertOwnLoad(
  context: Pick<LoadContext, 'db' | 'records'>,
  load: NewOwnLoad,
): Promise<number> {
  return insertLoad(context, {
    ...load,
    ownFile: true,
    mends: null,
    entity: 'auto',
    fileSize: 0,
    sha256: createHash('sha256').digest('hex'),
    fileRef: null,
    header: null,
    columnMap: {},
    source: {},
    readAs: null,
    preset: null,
    guard: null,
    totalRows: 0,
    duplicateOf: null,
    fileOf: null,
    chunks: [],
  });
}

/**
 * Attaches a file to a load. The sweep removes the file that the load had before.
 * @throws TransientError if the sweep has removed the new file
 */
export async function attachFile(db: Database, loadId: number, { chunks, ...file }: OwnFile): Promise<void> {
  if (!(await takeReceived(db, file.ref))) throw new TransientError('the file waited too long for its load');
  await sql`
    insert into received_files (file_ref)
    select file_ref from loads where load_id = ${loadId} and file_ref is not null`.execute(db);
  await deleteWhere(db, 'load_chunks', { loadId }).execute();
  await updateWhere(db, 'loads', { loadId })
    .set({
      file_ref: file.ref,
      file_size: file.bytes,
      sha256: Buffer.from(file.sha256, 'hex'),
      total_rows: file.rows,
      chunk_count: chunks.length,
      chunks_done: 0,
    })
    .execute();
  await insertChunks(db, loadId, chunks);
}

async function insertChunks(db: Database, loadId: number, chunks: readonly ChunkRange[]): Promise<void> {
  await rowsOf(prepared(db))`
    insert into load_chunks
      (load_id, chunk_no, byte_start, byte_end, first_row, first_line, row_count, oversized)
    select ${loadId}, (ordinality - 1)::int, byte_start, byte_end, first_row, first_line, row_count, oversized
    from rows from (
      json_to_recordset(${JSON.stringify(chunks.map((chunk) => snake(chunk)))}) as (
        byte_start bigint, byte_end bigint, first_row bigint, first_line bigint, row_count int, oversized boolean
      )
    ) with ordinality as c (byte_start, byte_end, first_row, first_line, row_count, oversized, ordinality)`;
}

/** Replaces characters that jsonb cannot store, for example in names of columns. */
function storable(_key: string, value: unknown): unknown {
  return typeof value === 'string' ? value.replaceAll('\0', '␀').toWellFormed() : value;
}

export interface StartedLoad extends JobIdentity {
  readonly tasks: readonly DueTask[];
}

const currentCursor = sql<string>`sluice.current_cursor()::pg_snapshot`;

/**
 * Starts a queued load. Adds a task for each unfinished chunk, or a `begin` task if the load starts
 * over. Returns `null` if the load is not queued.
 */
export async function startLoad(db: Database, loadId: number): Promise<StartedLoad | null> {
  const load = await updateWhere(prepared(db), 'loads', { loadId, status: 'queued' })
    .set({
      status: 'processing',
      started_at: sql`coalesce(started_at, now())`,
      // If the load starts over, `beginPass` sets `work_started_at` later.
      work_started_at: sql`case when begins_anew then null else now() end`,
      event_removals: sql`coalesce(event_removals, ${eventRemovals})`,
    })
    .returning(camel('job_id', 'request_id', 'environment_id', 'begins_anew', 'pass'))
    .returning(isOfKnownFile)
    .executeTakeFirst();
  if (load === undefined) return null;
  const { beginsAnew, pass, isOfKnownFile: mayRepeat, ...job } = load;
  if (!beginsAnew) {
    if (keepsPlan(pass)) await beginPlan(db, loadId);
    if (mayRepeat) await countReload(db, loadId);
    return { ...job, tasks: await insertChunkTasks(db, loadId, job) };
  }
  const begin = await insertTask(db, { kind: 'begin', subjectId: loadId, part: 0, ...job });
  return { ...job, tasks: begin === null ? [] : [begin] };
}

/**
 * Inserts a task for each unfinished chunk, or only for the first unfinished chunk if the load is
 * ordered. If all chunks are done, inserts the finish task. Returns the tasks that the caller must
 * pass to `notifyQueue`.
 */
export async function insertChunkTasks(
  db: Database,
  loadId: number,
  load: JobIdentity & { readonly environmentId: number },
): Promise<DueTask[]> {
  const { rows } = await sql<DueTask & { isNotified: boolean }>`
    insert into tasks (kind, subject_id, part, environment_id, job_id, request_id, notified_at)
    select 'chunk', load_id, chunk_no, ${load.environmentId}, ${load.jobId}, ${load.requestId},
      case when row_number() over (order by chunk_no) <= ${NOTIFIED_TASKS} then now() end
    from load_chunks
    where load_id = ${loadId} and done_at is null
    order by chunk_no
    limit (select case when ${isOrdered} then 1 end from loads where load_id = ${loadId})
    returning task_id as "taskId", kind, attempt, notified_at is not null as "isNotified"`.execute(
    prepared(db),
  );
  if (rows.length > 0) return rows.filter(({ isNotified }) => isNotified);
  const finish = await insertTask(db, { kind: 'finish', subjectId: loadId, part: 0, ...load });
  return finish === null ? [] : [finish];
}

export function findExpiredFiles(db: Database, fileDays: number, limit: number) {
  return db
    .selectFrom('loads')
    .select(['load_id as loadId', 'file_ref as ref'])
    .where('file_ref', 'is not', null)
    .where((eb) => eb.or([eb('ended_at', '<', daysAgo(fileDays)), eb('failure_code', '=', HOLD_EXPIRED)]))
    .limit(limit)
    .$narrowType<{ ref: NotNull }>()
    .execute();
}

/**
 * Forgets files that are being removed: clears the references to them, and deletes the rows of
 * their plans and the data for retrying their loads.
 */
export async function forgetFiles(db: Database, loadIds: readonly number[]): Promise<void> {
  await forgetPlannedRows(db, loadIds);
  await db.updateTable('loads').set({ file_ref: null }).where('load_id', 'in', loadIds).execute();
  await forgetRepeats(db, loadIds);
}

/**
 * Detaches the file from a load that has ended, and returns the file so that the caller can remove
 * it. Returns `null` if there is no file, or if a plan that can be applied still needs it.
 */
export async function releaseFile(db: Database, loadId: number): Promise<FileRef | null> {
  const load = await selectWhere(db, 'loads', { loadId })
    .select('file_ref as ref')
    .where('status', 'in', endedStatuses)
    .where((eb) => eb.not(eb.and([eb('status', '=', 'completed'), eb('pass', '=', 'plan')])))
    .executeTakeFirst();
  if (load === undefined || load.ref === null) return null;
  await forgetFiles(db, [loadId]);
  await recordUnused(db, load.ref);
  return load.ref;
}

/**
 * Deletes loads that have no file and ended at least `jobDays` days ago, together with their
 * rejects.
 */
export function deleteLoads(db: Database, jobDays: number): Promise<number> {
  return changedBy(db)`
    delete from loads
    where file_ref is null and ended_at < ${daysAgo(jobDays)}`;
}
