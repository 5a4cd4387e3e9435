import { sql } from 'kysely';
import type { FileRef } from '../files/file-store.ts';
import { camel, inMs, snake } from '../postgres/columns.ts';
import {
  changedBy,
  columnOf,
  type Database,
  hasRows,
  prepared,
  rowsOf,
  selectWhere,
} from '../postgres/database.ts';

/** `sha256` (hex) is the hash of the sent bytes. `ref` is `null` if the file no longer exists. */
export type Upload = Awaited<ReturnType<typeof insertUpload>>;

interface NewUpload {
  readonly uploadId: string;
  readonly filename: string | null;
  readonly contentType: string | null;
  readonly isGzip: boolean;
  readonly fileSize: number;
  readonly sha256: string;
  readonly ref: FileRef;
}

/**
 * File of the upload. If the file belongs to a load, it may be removed before the upload expires.
 */
const ref = sql<FileRef | null>`
  coalesce(uploads.file_ref, (select l.file_ref from loads l where l.load_id = uploads.file_of))`;

const uploadColumns = [
  ...camel('upload_id', 'filename', 'content_type', 'is_gzip', 'file_size', 'uploads.sha256'),
  ...camel('created_at', 'expires_at'),
  sql<string | null>`(select l.job_id from loads l where l.load_id = uploads.file_of)`.as('fileOf'),
  ref.as('ref'),
] as const;

export function insertUpload(
  db: Database,
  environmentId: number,
  { ref: fileRef, ...upload }: NewUpload,
  keptMs: number,
) {
  return db
    .insertInto('uploads')
    .values(snake({ ...upload, fileRef, environmentId, expiresAt: inMs(keptMs) }))
    .returning(uploadColumns)
    .executeTakeFirstOrThrow();
}

/**
 * Adds an upload that uses the stored file of a load. Returns `null` if the load does not exist or
 * has no file.
 */
export async function insertUploadOfLoad(
  db: Database,
  environmentId: number,
  jobId: string,
  uploadId: string,
  keptMs: number,
): Promise<Upload | null> {
  const count = await changedBy(db)`
    insert into uploads (upload_id, environment_id, filename, is_gzip, file_size, sha256, file_of, expires_at)
    select
      ${uploadId}::uuid, environment_id, filename, false, file_size, encode(sha256, 'hex'), load_id, ${inMs(keptMs)}
    from loads
    where environment_id = ${environmentId} and job_id = ${jobId} and file_ref is not null`;
  return count === 0 ? null : findUpload(db, environmentId, uploadId);
}

export async function findUpload(
  db: Database,
  environmentId: number,
  uploadId: string,
): Promise<Upload | null> {
  const row = await selectWhere(db, 'uploads', { uploadId, environmentId })
    .select(uploadColumns)
    .where('expires_at', '>', sql<Date>`now()`)
    .where(ref, 'is not', null)
    .executeTakeFirst();
  return row ?? null;
}

/**
 * An upload that is about to be deleted, and that requests no longer find. `ref` is `null` if the
 * file belongs to a load and must be kept.
 */
export interface CondemnedUpload {
  readonly uploadId: string;
  readonly ref: FileRef | null;
}

export function condemnUpload(
  db: Database,
  environmentId: number,
  uploadId: string,
): Promise<CondemnedUpload[]> {
  return condemn(db)`
    select upload_id
    from uploads
    where upload_id = ${uploadId} and environment_id = ${environmentId} and expires_at > now()`;
}

export function condemnExpiredUploads(db: Database, limit: number): Promise<CondemnedUpload[]> {
  return condemn(db)`
    select upload_id from uploads where expires_at <= now() order by expires_at limit ${limit}`;
}

export function condemnEarlierUploads(
  db: Database,
  deletionId: number,
  limit: number,
): Promise<CondemnedUpload[]> {
  return condemn(db)`
    select u.upload_id
    from uploads u
    join deletions d using (environment_id)
    where d.deletion_id = ${deletionId} and u.created_at <= d.accepted_at
    limit ${limit}`;
}

function condemn(db: Database): (...statement: Parameters<typeof sql>) => Promise<CondemnedUpload[]> {
  return (...statement) => rowsOf<CondemnedUpload>(db)`
    update uploads
    set expires_at = '-infinity'
    where upload_id in (${sql(...statement)})
    returning upload_id as "uploadId", file_ref as ref`;
}

export async function forgetUploads(db: Database, uploads: readonly CondemnedUpload[]): Promise<void> {
  const ids = uploads.map(({ uploadId }) => uploadId);
  await db.deleteFrom('uploads').where('upload_id', 'in', ids).execute();
}

/**
 * Records a received file. Is called before the file is complete, so that the sweep can find the
 * file if it is abandoned.
 */
export async function recordReceived(db: Database, ref: FileRef): Promise<void> {
  await sql`insert into received_files (file_ref) values (${ref})`.execute(prepared(db));
}

/**
 * Records a file that no load uses. If the caller cannot remove the file now, the next pruning
 * removes it.
 */
export async function recordUnused(db: Database, ref: FileRef): Promise<void> {
  await sql`
    insert into received_files (file_ref, received_at, condemned_at) values (${ref}, '-infinity', now())`.execute(
    db,
  );
}

/**
 * Prevents the sweep from removing a file. Returns false if the file no longer exists or is being
 * removed.
 */
export function touchReceived(db: Database, ref: FileRef): Promise<boolean> {
  return hasRows(db)`
    update received_files set received_at = now() where file_ref = ${ref} and condemned_at is null returning 1`;
}

/** Takes a file in the transaction of a load. Returns false if it is gone or being removed. */
export function takeReceived(db: Database, ref: FileRef): Promise<boolean> {
  return hasRows(
    prepared(db),
  )`delete from received_files where file_ref = ${ref} and condemned_at is null returning 1`;
}

/**
 * Marks a received file for removal. Returns false if the file belongs to a load or no longer
 * exists. Waits for a transaction that has assigned the file to a load and may still commit. Must
 * be called in a transaction.
 * @throws the database's error if waiting takes longer than `withinMs`
 */
export async function condemnReceived(db: Database, ref: FileRef, withinMs: number): Promise<boolean> {
  const bound = `${withinMs}ms`;
  await rowsOf(db)`
    select set_config('statement_timeout', ${bound}, true), set_config('lock_timeout', ${bound}, true)`;
  return hasRows(db)`
    update received_files set condemned_at = coalesce(condemned_at, now()) where file_ref = ${ref} returning 1`;
}

/** Marks abandoned files for removal. No load can use these files any more. */
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
  await sql`delete from received_files where file_ref = ${ref}`.execute(db);
}
