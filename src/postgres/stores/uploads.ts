import { type RawBuilder, sql } from 'kysely';
import type { FileRef } from '../../files/file-store.ts';
import { camel, inMs, snake } from '../columns.ts';
import {
  changedBy,
  columnOf,
  type Database,
  deleteWhere,
  hasRows,
  rowsOf,
  selectWhere,
  updateWhere,
} from '../database.ts';

/** A file sent to be inspected, or as much of it as has come. `sha256`, in hex, is of the bytes as sent; null until they were read. */
export type Upload = Awaited<ReturnType<typeof listUploads>>[number];

export interface UploadPart {
  readonly start: number;
  readonly end: number;
  readonly ref: FileRef;
}

/** The right to append to an upload, until another request claims it. */
export interface AppendClaim {
  readonly uploadId: string;
  readonly attempt: number;
}

export type NewUpload = Omit<Upload, 'fileOf' | 'createdAt' | 'expiresAt'>;

const uploadColumns = [
  ...camel(
    'upload_id',
    'filename',
    'content_type',
    'is_gzip',
    'file_size',
    'received_bytes',
    'uploads.sha256',
  ),
  ...camel('created_at', 'expires_at'),
  sql<string | null>`(select l.job_id from loads l where l.load_id = uploads.file_of)`.as('fileOf'),
] as const;

/** The stored file of a load may expire before the upload does. */
const hasFile = sql<boolean>`(
  uploads.file_of is null
  or exists (select 1 from loads l where l.load_id = uploads.file_of and l.file_ref is not null)
)`;

export function insertUpload(
  db: Database,
  environmentId: number,
  upload: NewUpload,
  keptMs: number,
): Promise<Upload> {
  return db
    .insertInto('uploads')
    .values(snake({ ...upload, environmentId, expiresAt: inMs(keptMs) }))
    .returning(uploadColumns)
    .executeTakeFirstOrThrow();
}

/** Makes an upload of the stored file of a load. Returns `null` if the environment has no such load, or its file is gone. */
export async function insertUploadOfLoad(
  db: Database,
  environmentId: number,
  jobId: string,
  uploadId: string,
  keptMs: number,
): Promise<Upload | null> {
  const made = await changedBy(db)`
    insert into uploads (
      upload_id, environment_id, filename, is_gzip, file_size, received_bytes, sha256, file_of, expires_at
    )
    select
      ${uploadId}::uuid, environment_id, filename, false, file_size, file_size, encode(sha256, 'hex'), load_id, ${inMs(keptMs)}
    from loads
    where environment_id = ${environmentId} and job_id = ${jobId} and file_ref is not null`;
  return made === 0 ? null : findUpload(db, environmentId, uploadId);
}

/** Call it in the transaction that counts the bytes as received. */
export async function insertPart(
  db: Database,
  uploadId: string,
  { start, end, ref }: UploadPart,
): Promise<void> {
  await db
    .insertInto('upload_parts')
    .values({ upload_id: uploadId, byte_start: start, byte_end: end, file_ref: ref })
    .execute();
}

/** Counts the unfinished uploads of the environment, and locks it: call it in the transaction that creates another. */
export async function countOpenUploads(db: Database, environmentId: number): Promise<number> {
  await sql`select 1 from environments where environment_id = ${environmentId} for no key update`.execute(db);
  const { open } = await selectWhere(db, 'uploads', { environmentId })
    .select(({ fn }) => fn.countAll<string>().as('open'))
    .where('expires_at', '>', sql<Date>`now()`)
    .whereRef('received_bytes', '<', 'file_size')
    .executeTakeFirstOrThrow();
  return Number(open);
}

export async function findUpload(
  db: Database,
  environmentId: number,
  uploadId: string,
): Promise<Upload | null> {
  const row = await selectWhere(db, 'uploads', { uploadId, environmentId })
    .select(uploadColumns)
    .where('expires_at', '>', sql<Date>`now()`)
    .where(hasFile)
    .executeTakeFirst();
  return row ?? null;
}

export function listUploads(db: Database, environmentId: number, limit: number) {
  return selectWhere(db, 'uploads', { environmentId })
    .select(uploadColumns)
    .where('expires_at', '>', sql<Date>`now()`)
    .where(hasFile)
    .orderBy('created_at', 'desc')
    .orderBy('upload_id', 'desc')
    .limit(limit)
    .execute();
}

export function listParts(db: Database, uploadId: string): Promise<UploadPart[]> {
  return selectWhere(db, 'upload_parts', { uploadId })
    .select(['byte_start as start', 'byte_end as end', 'file_ref as ref'])
    .orderBy('byte_start')
    .execute();
}

export async function findStoredFile(db: Database, jobId: string): Promise<FileRef | null> {
  const row = await selectWhere(db, 'loads', { jobId }).select('file_ref').executeTakeFirst();
  return row?.file_ref ?? null;
}

/** Lets only this request append. Returns `null` if the upload no longer ends at `offset`, or has expired. */
export async function claimAppend(
  db: Database,
  uploadId: string,
  offset: number,
): Promise<AppendClaim | null> {
  const row = await updateWhere(db, 'uploads', { uploadId, receivedBytes: offset })
    .set(({ eb }) => ({ attempt: eb('attempt', '+', 1) }))
    .where('expires_at', '>', sql<Date>`now()`)
    .returning('attempt')
    .executeTakeFirst();
  return row === undefined ? null : { uploadId, attempt: row.attempt };
}

/** Adds a part and keeps the upload for `keptMs` from now. Returns false if another request has claimed it, or it is being removed. */
export async function addPart(
  db: Database,
  { uploadId, attempt }: AppendClaim,
  part: UploadPart,
  keptMs: number,
): Promise<boolean> {
  const row = await updateWhere(db, 'uploads', { uploadId, attempt, receivedBytes: part.start })
    .set({ received_bytes: part.end, expires_at: inMs(keptMs) })
    .where('expires_at', '>', sql<Date>`'-infinity'`)
    .returning('upload_id')
    .executeTakeFirst();
  if (row === undefined) return false;
  await insertPart(db, uploadId, part);
  return true;
}

export async function recordHash(db: Database, uploadId: string, sha256: string): Promise<void> {
  await updateWhere(db, 'uploads', { uploadId }).set({ sha256 }).execute();
}

export function condemnUpload(db: Database, environmentId: number, uploadId: string): Promise<boolean> {
  return hasRows(db)`
    update uploads
    set expires_at = '-infinity'
    where upload_id = ${uploadId} and environment_id = ${environmentId} and expires_at > now()
    returning 1`;
}

export function condemnExpiredUploads(db: Database, limit: number): Promise<string[]> {
  return condemn(
    db,
    sql`select upload_id from uploads where expires_at <= now() order by expires_at limit ${limit}`,
  );
}

export function condemnEarlierUploads(db: Database, deletionId: number, limit: number): Promise<string[]> {
  return condemn(
    db,
    sql`
      select u.upload_id
      from uploads u
      join deletions d using (environment_id)
      where d.deletion_id = ${deletionId} and u.created_at <= d.accepted_at
      limit ${limit}`,
  );
}

function condemn(db: Database, chosen: RawBuilder<unknown>): Promise<string[]> {
  return columnOf<string>(db)`
    update uploads
    set expires_at = '-infinity'
    where upload_id in (${chosen})
    returning upload_id as id`;
}

export async function forgetUploads(db: Database, uploadIds: readonly string[]): Promise<void> {
  await db.deleteFrom('uploads').where('upload_id', 'in', uploadIds).execute();
}

/** Records a file before it is complete in the store, so that an abandoned one is found. */
export async function recordReceived(db: Database, ref: FileRef): Promise<void> {
  await db.insertInto('received_files').values({ file_ref: ref }).execute();
}

/** Somebody still uses the file; false if it is being removed, or gone. */
export function touchReceived(db: Database, ref: FileRef): Promise<boolean> {
  return hasRows(db)`
    update received_files set received_at = now() where file_ref = ${ref} and condemned_at is null returning 1`;
}

/** The file belongs to a load from now on; false if it is being removed. Call it in the transaction of the load. */
export function takeReceived(db: Database, ref: FileRef): Promise<boolean> {
  return hasRows(db)`delete from received_files where file_ref = ${ref} and condemned_at is null returning 1`;
}

/**
 * No load may take the file any more: true. False if one has it, or it is gone. Waits for a transaction that took it and of
 * which nobody knows yet whether it is committed. Call it in a transaction.
 * @throws an error of Postgres if that is not known within `withinMs`
 */
export async function condemnReceived(db: Database, ref: FileRef, withinMs: number): Promise<boolean> {
  const bound = `${withinMs}ms`;
  await rowsOf(db)`
    select set_config('statement_timeout', ${bound}, true), set_config('lock_timeout', ${bound}, true)`;
  const row = await updateWhere(db, 'received_files', { fileRef: ref })
    .set({ condemned_at: sql`coalesce(condemned_at, now())` })
    .returning('file_ref')
    .executeTakeFirst();
  return row !== undefined;
}

/** Takes up to `limit` files that no load has taken for `olderThanMs`; none can any more. */
export function condemnAbandoned(db: Database, olderThanMs: number, limit: number): Promise<FileRef[]> {
  return columnOf<FileRef>(db)`
    update received_files
    set condemned_at = coalesce(condemned_at, now())
    where file_ref in (
      select file_ref
      from received_files
      where received_at < ${inMs(-olderThanMs)}
      order by received_at
      limit ${limit}
    )
    returning file_ref`;
}

export async function forgetReceived(db: Database, ref: FileRef): Promise<void> {
  await deleteWhere(db, 'received_files', { fileRef: ref }).execute();
}
