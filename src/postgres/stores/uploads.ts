import { type Selectable, sql } from 'kysely';
import type { FileRef } from '../../files/file-store.ts';
import type { Database } from '../database.ts';
import type { Uploads } from '../schema.ts';

/** A file that was sent to be inspected, as it was sent; or as much of it as has come. */
export interface Upload {
  readonly uploadId: string;
  /** As the sender calls it; null: not at all. */
  readonly filename: string | null;
  readonly contentType: string | null;
  /** The request said `Content-Encoding: gzip`. */
  readonly isGzip: boolean;
  /** Bytes as sent. */
  readonly fileSize: number;
  /** Of these, those that have come. */
  readonly receivedBytes: number;
  /** Hex, of the bytes as sent; null as long as that is not known. */
  readonly sha256: string | null;
  /** The job whose stored file it is; null: it was sent. */
  readonly fileOf: string | null;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

/** The bytes [start, end) of an upload, as a file of their own. */
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
  'upload_id',
  'filename',
  'content_type',
  'is_gzip',
  'file_size',
  'received_bytes',
  'uploads.sha256',
  'created_at',
  'expires_at',
  sql<string | null>`(select l.job_id from loads l where l.load_id = uploads.file_of)`.as('file_of_job'),
] as const;

/** That of a load may be gone before the upload is. */
const hasFile = sql<boolean>`(
  uploads.file_of is null
  or exists (select 1 from loads l where l.load_id = uploads.file_of and l.file_ref is not null)
)`;

const inMs = (ms: number) => sql<Date>`now() + ${ms} * interval '1 millisecond'`;

/** Kept for `keptMs` from now on. */
export async function insertUpload(
  db: Database,
  environmentId: number,
  upload: NewUpload,
  keptMs: number,
): Promise<Upload> {
  const row = await db
    .insertInto('uploads')
    .values({
      upload_id: upload.uploadId,
      environment_id: environmentId,
      filename: upload.filename,
      content_type: upload.contentType,
      is_gzip: upload.isGzip,
      file_size: upload.fileSize,
      received_bytes: upload.receivedBytes,
      sha256: upload.sha256,
      expires_at: inMs(keptMs),
    })
    .returning(uploadColumns)
    .executeTakeFirstOrThrow();
  return toUpload(row);
}

/** The stored file of a load, kept for `keptMs` from now on at most; null if the environment has no such load, or its file is gone. */
export async function insertUploadOfLoad(
  db: Database,
  environmentId: number,
  jobId: string,
  uploadId: string,
  keptMs: number,
): Promise<Upload | null> {
  const row = await db
    .insertInto('uploads')
    .columns([
      'upload_id',
      'environment_id',
      'filename',
      'is_gzip',
      'file_size',
      'received_bytes',
      'sha256',
      'file_of',
      'expires_at',
    ])
    .expression((eb) =>
      eb
        .selectFrom('loads')
        .where('environment_id', '=', environmentId)
        .where('job_id', '=', jobId)
        .where('file_ref', 'is not', null)
        .select([
          sql<string>`${uploadId}::uuid`.as('upload_id'),
          'environment_id',
          'filename',
          sql<boolean>`false`.as('is_gzip'),
          'file_size',
          'file_size as received_bytes',
          sql<string>`encode(sha256, 'hex')`.as('sha256'),
          'load_id',
          inMs(keptMs).as('expires_at'),
        ]),
    )
    .returning(uploadColumns)
    .executeTakeFirst();
  return row === undefined ? null : toUpload(row);
}

/** Part of the transaction that counts its bytes as received. */
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

/** Uploads of the environment of which bytes are missing. Whoever creates one counts first, one at a time: call it in the transaction. */
export async function countOpenUploads(db: Database, environmentId: number): Promise<number> {
  await sql`select 1 from environments where environment_id = ${environmentId} for no key update`.execute(db);
  const { open } = await db
    .selectFrom('uploads')
    .select(({ fn }) => fn.countAll<string>().as('open'))
    .where('environment_id', '=', environmentId)
    .where('expires_at', '>', sql<Date>`now()`)
    .whereRef('received_bytes', '<', 'file_size')
    .executeTakeFirstOrThrow();
  return Number(open);
}

/** Null if there is none in the environment, or it has expired. */
export async function findUpload(
  db: Database,
  environmentId: number,
  uploadId: string,
): Promise<Upload | null> {
  const row = await db
    .selectFrom('uploads')
    .select(uploadColumns)
    .where('upload_id', '=', uploadId)
    .where('environment_id', '=', environmentId)
    .where('expires_at', '>', sql<Date>`now()`)
    .where(hasFile)
    .executeTakeFirst();
  return row === undefined ? null : toUpload(row);
}

/** The latest of the environment that have not expired, latest first. */
export async function listUploads(db: Database, environmentId: number, limit: number): Promise<Upload[]> {
  const rows = await db
    .selectFrom('uploads')
    .select(uploadColumns)
    .where('environment_id', '=', environmentId)
    .where('expires_at', '>', sql<Date>`now()`)
    .where(hasFile)
    .orderBy('created_at', 'desc')
    .orderBy('upload_id', 'desc')
    .limit(limit)
    .execute();
  return rows.map(toUpload);
}

/** What has come of it, in the order of the bytes. */
export async function listParts(db: Database, uploadId: string): Promise<UploadPart[]> {
  const rows = await db
    .selectFrom('upload_parts')
    .select(['byte_start', 'byte_end', 'file_ref'])
    .where('upload_id', '=', uploadId)
    .orderBy('byte_start')
    .execute();
  return rows.map(({ byte_start, byte_end, file_ref }) => ({
    start: byte_start,
    end: byte_end,
    ref: file_ref as FileRef,
  }));
}

/** The stored file that an upload is of; null if it is gone. */
export async function findStoredFile(db: Database, jobId: string): Promise<FileRef | null> {
  const row = await db.selectFrom('loads').select('file_ref').where('job_id', '=', jobId).executeTakeFirst();
  return (row?.file_ref ?? null) as FileRef | null;
}

/** From now on this request alone may append; null if by now something else has come than the `offset` says, or nothing may. */
export async function claimAppend(
  db: Database,
  uploadId: string,
  offset: number,
): Promise<AppendClaim | null> {
  const row = await db
    .updateTable('uploads')
    .set(({ eb }) => ({ attempt: eb('attempt', '+', 1) }))
    .where('upload_id', '=', uploadId)
    .where('received_bytes', '=', offset)
    .where('expires_at', '>', sql<Date>`now()`)
    .returning('attempt')
    .executeTakeFirst();
  return row === undefined ? null : { uploadId, attempt: row.attempt };
}

/** The part counts, and the upload is kept for `keptMs` from now on; false if another request has claimed it, or it is being removed. */
export async function addPart(
  db: Database,
  { uploadId, attempt }: AppendClaim,
  part: UploadPart,
  keptMs: number,
): Promise<boolean> {
  const row = await db
    .updateTable('uploads')
    .set({ received_bytes: part.end, expires_at: inMs(keptMs) })
    .where('upload_id', '=', uploadId)
    .where('attempt', '=', attempt)
    .where('received_bytes', '=', part.start)
    .where('expires_at', '>', sql<Date>`'-infinity'`)
    .returning('upload_id')
    .executeTakeFirst();
  if (row === undefined) return false;
  await insertPart(db, uploadId, part);
  return true;
}

/** Once all of its bytes have come. */
export async function recordHash(db: Database, uploadId: string, sha256: string): Promise<void> {
  await db.updateTable('uploads').set({ sha256 }).where('upload_id', '=', uploadId).execute();
}

/** Nothing is added to it any more; false if the environment has none of that id. */
export async function condemnUpload(db: Database, environmentId: number, uploadId: string): Promise<boolean> {
  const row = await db
    .updateTable('uploads')
    .set({ expires_at: sql<Date>`'-infinity'` })
    .where('upload_id', '=', uploadId)
    .where('environment_id', '=', environmentId)
    .where('expires_at', '>', sql<Date>`now()`)
    .returning('upload_id')
    .executeTakeFirst();
  return row !== undefined;
}

/** Up to `limit` that have expired: nothing is added to them any more. */
export async function condemnExpiredUploads(db: Database, limit: number): Promise<string[]> {
  const rows = await db
    .updateTable('uploads')
    .set({ expires_at: sql<Date>`'-infinity'` })
    .where('upload_id', 'in', (eb) =>
      eb
        .selectFrom('uploads')
        .select('upload_id')
        .where('expires_at', '<=', sql<Date>`now()`)
        .orderBy('expires_at')
        .limit(limit),
    )
    .returning('upload_id')
    .execute();
  return rows.map(({ upload_id }) => upload_id);
}

/** Up to `limit` that were created in the deletion's environment before it: nothing is added to them any more. */
export async function condemnEarlierUploads(
  db: Database,
  deletionId: number,
  limit: number,
): Promise<string[]> {
  const rows = await db
    .updateTable('uploads')
    .set({ expires_at: sql<Date>`'-infinity'` })
    .where('upload_id', 'in', (eb) =>
      eb
        .selectFrom('uploads as u')
        .innerJoin('deletions as d', 'd.environment_id', 'u.environment_id')
        .select('u.upload_id')
        .where('d.deletion_id', '=', deletionId)
        .whereRef('u.created_at', '<=', 'd.accepted_at')
        .limit(limit),
    )
    .returning('upload_id')
    .execute();
  return rows.map(({ upload_id }) => upload_id);
}

/** Once their files are gone. */
export async function forgetUploads(db: Database, uploadIds: readonly string[]): Promise<void> {
  await db.deleteFrom('uploads').where('upload_id', 'in', uploadIds).execute();
}

type UploadRow = Omit<Selectable<Uploads>, 'environment_id' | 'attempt' | 'file_of'> & {
  readonly file_of_job: string | null;
};

function toUpload(row: UploadRow): Upload {
  return {
    uploadId: row.upload_id,
    filename: row.filename,
    contentType: row.content_type,
    isGzip: row.is_gzip,
    fileSize: row.file_size,
    receivedBytes: row.received_bytes,
    sha256: row.sha256,
    fileOf: row.file_of_job,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  };
}
