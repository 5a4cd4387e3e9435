import { sql } from 'kysely';
import type { FileRef } from '../../files/file-store.ts';
import type { Database } from '../database.ts';

/** A file that was sent to be inspected, as it was sent. */
export interface Upload {
  readonly uploadId: string;
  readonly ref: FileRef;
  /** As the sender calls it; null: not at all. */
  readonly filename: string | null;
  readonly contentType: string | null;
  /** The request said `Content-Encoding: gzip`. */
  readonly isGzip: boolean;
  /** Bytes as sent. */
  readonly fileSize: number;
  /** Hex, of the bytes as sent. */
  readonly sha256: string;
  readonly expiresAt: Date;
}

/** Kept for `keptMs` from now on. */
export async function insertUpload(
  db: Database,
  environmentId: number,
  upload: Omit<Upload, 'expiresAt'>,
  keptMs: number,
): Promise<Upload> {
  const { expires_at } = await db
    .insertInto('uploads')
    .values({
      upload_id: upload.uploadId,
      environment_id: environmentId,
      file_ref: upload.ref,
      filename: upload.filename,
      content_type: upload.contentType,
      is_gzip: upload.isGzip,
      file_size: upload.fileSize,
      sha256: upload.sha256,
      expires_at: sql<Date>`now() + ${keptMs} * interval '1 millisecond'`,
    })
    .returning('expires_at')
    .executeTakeFirstOrThrow();
  return { ...upload, expiresAt: expires_at };
}

/** Null if there is none in the environment, or it has expired. */
export async function findUpload(
  db: Database,
  environmentId: number,
  uploadId: string,
): Promise<Upload | null> {
  const row = await db
    .selectFrom('uploads')
    .selectAll()
    .where('upload_id', '=', uploadId)
    .where('environment_id', '=', environmentId)
    .where('expires_at', '>', sql<Date>`now()`)
    .executeTakeFirst();
  if (row === undefined) return null;
  return {
    uploadId: row.upload_id,
    ref: row.file_ref as FileRef,
    filename: row.filename,
    contentType: row.content_type,
    isGzip: row.is_gzip,
    fileSize: Number(row.file_size),
    sha256: row.sha256,
    expiresAt: row.expires_at,
  };
}

export type DoomedUpload = Pick<Upload, 'uploadId' | 'ref'>;

/** Up to `limit` that have expired. */
export async function findExpiredUploads(db: Database, limit: number): Promise<DoomedUpload[]> {
  const rows = await db
    .selectFrom('uploads')
    .select(['upload_id', 'file_ref'])
    .where('expires_at', '<=', sql<Date>`now()`)
    .orderBy('expires_at')
    .limit(limit)
    .execute();
  return rows.map(({ upload_id, file_ref }) => ({ uploadId: upload_id, ref: file_ref as FileRef }));
}

/** Up to `limit` that were sent to the deletion's environment before it. */
export async function findEarlierUploads(
  db: Database,
  deletionId: number,
  limit: number,
): Promise<DoomedUpload[]> {
  const rows = await db
    .selectFrom('uploads as u')
    .innerJoin('deletions as d', 'd.environment_id', 'u.environment_id')
    .select(['u.upload_id', 'u.file_ref'])
    .where('d.deletion_id', '=', deletionId)
    .whereRef('u.created_at', '<=', 'd.accepted_at')
    .limit(limit)
    .execute();
  return rows.map(({ upload_id, file_ref }) => ({ uploadId: upload_id, ref: file_ref as FileRef }));
}

/** Once their files are gone. */
export async function forgetUploads(db: Database, uploads: readonly DoomedUpload[]): Promise<void> {
  const ids = uploads.map(({ uploadId }) => uploadId);
  await db.deleteFrom('uploads').where('upload_id', 'in', ids).execute();
}
