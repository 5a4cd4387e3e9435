/*
 * Uploads: files that are kept as they were sent, to be inspected and then loaded without being sent again. `keepUpload` takes one
 * that comes in a single request, `append-upload.ts` one that goes on after a lost connection. Promise: what is stored is what was
 * sent, byte for byte, and nothing of it is left once it has expired.
 */
import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { uuidv7 } from 'uuidv7';
import { inputError, TransientError } from '../domain/errors.ts';
import { MAX_LISTED_UPLOADS, UPLOAD_KEPT_MS } from '../domain/limits.ts';
import { type FileStore, MissingFileError, streamOf } from '../files/file-store.ts';
import { inTransaction } from '../postgres/database.ts';
import {
  condemnExpiredUploads,
  condemnUpload,
  findStoredFile,
  findUpload,
  forgetUploads,
  insertPart,
  insertUpload,
  listParts,
  listUploads,
  recordHash,
  takeReceived,
  type Upload,
  type UploadPart,
} from '../postgres/stores/uploads.ts';
import { receivingStore } from './accept-load.ts';
import type { LoadContext } from './context.ts';
import { Intake, type ReceiveLimits } from './receive/intake.ts';
import type { ReceiveHints } from './receive/receive.ts';

export interface UploadDescription {
  readonly filename: string | null;
  readonly contentType: string | null;
  readonly isGzip: boolean;
}

type StoredPart = Omit<UploadPart, 'end'> & { readonly end: number | null };

/** An upload of which all bytes have come. */
export interface WholeUpload extends Upload {
  readonly sha256: string;
  /** In the order of the bytes. That of a load's file is the whole of it: `end` is null. */
  readonly parts: readonly StoredPart[];
}

type Context = Pick<LoadContext, 'db' | 'files'>;

/**
 * Keeps the bytes as they come, for UPLOAD_KEPT_MS.
 * @throws InputError `payload_too_large`, `upload_too_slow`, `empty_file`; TransientError for the store; what the source throws.
 */
export async function keepUpload(
  context: Pick<LoadContext, 'pool' | 'db' | 'files'>,
  environmentId: number,
  source: AsyncIterable<Uint8Array>,
  said: UploadDescription,
  limits: ReceiveLimits,
  signal: AbortSignal,
): Promise<WholeUpload> {
  const intake = new Intake(source, limits, signal, performance);
  const writer = await receivingStore(context, environmentId).create();
  try {
    for await (const bytes of intake.read()) await writer.write(bytes);
    if (intake.receivedBytes === 0) throw inputError('empty_file', 'The file is empty');
    await writer.commit();
  } catch (error) {
    await writer.discard().catch(() => undefined);
    throw error;
  }
  const [uploadId, sha256, bytes] = [uuidv7(), intake.sha256(), intake.receivedBytes];
  const part = { start: 0, end: bytes, ref: writer.ref };
  return inTransaction(context.pool, async ({ db }) => {
    if (!(await takeReceived(db, part.ref))) throw new TransientError('the file waited too long to be kept');
    const upload = { ...said, uploadId, fileSize: bytes, receivedBytes: bytes, sha256 };
    const kept = await insertUpload(db, environmentId, upload, UPLOAD_KEPT_MS);
    await insertPart(db, uploadId, part);
    return { ...kept, sha256, parts: [part] };
  });
}

/** @throws InputError `not_found` if the environment has none of that id, or it has expired. */
export async function requireUpload(
  { db }: Pick<LoadContext, 'db'>,
  environmentId: number,
  uploadId: string,
): Promise<Upload> {
  const upload = await findUpload(db, environmentId, uploadId);
  if (upload !== null) return upload;
  throw noSuchUpload(uploadId);
}

/** The latest that have not expired, latest first. */
export function listKeptUploads({ db }: Pick<LoadContext, 'db'>, environmentId: number): Promise<Upload[]> {
  return listUploads(db, environmentId, MAX_LISTED_UPLOADS);
}

/** @throws InputError `not_found`; `upload_incomplete` if not all bytes have come. */
export async function requireWholeUpload(
  context: Context,
  environmentId: number,
  uploadId: string,
): Promise<WholeUpload> {
  const upload = await requireUpload(context, environmentId, uploadId);
  if (upload.receivedBytes === upload.fileSize) return completeUpload(context, upload);
  throw inputError(
    'upload_incomplete',
    'The file has not come whole; send the rest first',
    `${upload.receivedBytes} of ${upload.fileSize} bytes have come`,
  );
}

/**
 * Returns an upload that is complete with its hash, for which it is read if it came in several requests. Whoever needs it
 * first does it, should the process have been killed before.
 */
export async function completeUpload(context: Context, upload: Upload): Promise<WholeUpload> {
  const { uploadId } = upload;
  const parts = await partsOf(context, upload);
  if (upload.sha256 !== null) return { ...upload, sha256: upload.sha256, parts };
  const hash = createHash('sha256');
  for await (const bytes of openUpload(context.files, { uploadId, parts })) hash.update(bytes as Buffer);
  const sha256 = hash.digest('hex');
  await recordHash(context.db, uploadId, sha256);
  return { ...upload, sha256, parts };
}

async function partsOf({ db }: Pick<Context, 'db'>, { uploadId, fileOf }: Upload): Promise<StoredPart[]> {
  if (fileOf === null) return listParts(db, uploadId);
  const ref = await findStoredFile(db, fileOf);
  if (ref === null) throw noSuchUpload(uploadId);
  return [{ start: 0, end: null, ref }];
}

/**
 * Its bytes as they were sent; of the file of a load, as they are stored. Removed while it is read, it fails with InputError
 * `not_found`.
 */
export function openUpload(
  files: FileStore,
  { uploadId, parts }: Pick<WholeUpload, 'uploadId' | 'parts'>,
): Readable {
  async function* read(): AsyncGenerator<Buffer> {
    for (const { ref, start, end } of parts) {
      const part = files.open(ref, end === null ? undefined : { start: 0, end: end - start });
      try {
        yield* part;
      } catch (error) {
        throw error instanceof MissingFileError ? noSuchUpload(uploadId) : error;
      } finally {
        part.destroy();
      }
    }
  }
  return streamOf(read());
}

/** Before it expires. @throws InputError `not_found`. */
export async function removeUpload(context: Context, environmentId: number, uploadId: string): Promise<void> {
  if (!(await condemnUpload(context.db, environmentId, uploadId))) throw noSuchUpload(uploadId);
  await removeParts(context, [uploadId]);
  await forgetUploads(context.db, [uploadId]);
}

/**
 * Removes uploads that are no longer added to. Each is forgotten after its files are gone, so that a killed process leaves
 * nothing behind.
 */
export async function removeParts({ db, files }: Context, uploadIds: readonly string[]): Promise<void> {
  for (const uploadId of uploadIds) {
    for (const { ref } of await listParts(db, uploadId)) await files.remove(ref);
  }
}

/** Returns hints for `receive` from the upload, for lack of explicit ones. */
export function hintsOf({ filename, contentType, isGzip }: Upload): ReceiveHints {
  return {
    filename: filename ?? undefined,
    contentType: contentType ?? undefined,
    contentEncodingGzip: isGzip,
  };
}

const uploadsPerBatch = 100;

/** Removes those that have expired; how many. Harmless to do twice at once. */
export async function removeExpiredUploads(context: Context): Promise<number> {
  let removed = 0;
  for (;;) {
    const expired = await condemnExpiredUploads(context.db, uploadsPerBatch);
    await removeParts(context, expired);
    if (expired.length > 0) await forgetUploads(context.db, expired);
    removed += expired.length;
    if (expired.length < uploadsPerBatch) return removed;
  }
}

function noSuchUpload(uploadId: string): Error {
  const message = 'there is no such upload, or it has expired; send the file again';
  return inputError('not_found', message, `upload_id: ${uploadId}`);
}
