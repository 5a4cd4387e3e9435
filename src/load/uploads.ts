/*
 * An upload is a file that is stored as sent, to be loaded later. It is deleted when it expires.
 */
import type { Readable } from 'node:stream';
import { inputError, TransientError } from '../base/errors.ts';
import { uuidv7 } from '../base/uuid.ts';
import { type FileStore, MissingFileError, streamOf } from '../files/file-store.ts';
import { inTransaction } from '../postgres/database.ts';
import type { LoadContext } from './context.ts';
import { UPLOAD_KEPT_MS } from './limits.ts';
import type { Load } from './read-store.ts';
import { Intake, type ReceiveLimits } from './receive/intake.ts';
import type { ReceiveHints } from './receive/receive.ts';
import { receivingStore } from './received.ts';
import {
  type CondemnedUpload,
  condemnExpiredUploads,
  condemnUpload,
  findUpload,
  forgetUploads,
  insertUpload,
  takeReceived,
  type Upload,
} from './upload-store.ts';

interface UploadDescription {
  readonly filename: string | null;
  readonly contentType: string | null;
  readonly isGzip: boolean;
}

type Context = Pick<LoadContext, 'db' | 'files'>;

/** @throws InputError `payload_too_large`, `upload_too_slow`, `empty_file`, TransientError */
export async function keepUpload(
  context: Pick<LoadContext, 'pool' | 'db' | 'files'>,
  environmentId: number,
  source: AsyncIterable<Uint8Array>,
  description: UploadDescription,
  limits: ReceiveLimits,
  signal: AbortSignal,
): Promise<Upload> {
  const intake = new Intake(source, limits, signal, performance);
  const writer = await receivingStore(context).create();
  try {
    for await (const bytes of intake.read()) await writer.write(bytes);
    if (intake.receivedBytes === 0) throw inputError('empty_file', 'The file is empty');
    await writer.commit();
  } catch (error) {
    await writer.discard().catch(() => undefined);
    throw error;
  }
  const { ref } = writer;
  const upload = {
    ...description,
    uploadId: uuidv7(),
    fileSize: intake.receivedBytes,
    sha256: intake.sha256(),
    ref,
  };
  return inTransaction(context.pool, async ({ db }) => {
    if (!(await takeReceived(db, ref))) throw new TransientError('the file waited too long to be kept');
    return insertUpload(db, environmentId, upload, UPLOAD_KEPT_MS);
  });
}

/** @throws InputError `not_found` for an unknown or expired upload */
export async function requireUpload(
  { db }: Pick<LoadContext, 'db'>,
  environmentId: number,
  uploadId: string,
): Promise<Upload> {
  const upload = await findUpload(db, environmentId, uploadId);
  if (upload !== null) return upload;
  throw noSuchUpload(uploadId);
}

/** The returned stream throws InputError `not_found` if the file has been removed. */
export function openUpload(files: FileStore, { uploadId, ref }: Upload): Readable {
  async function* read(): AsyncGenerator<Buffer> {
    if (ref === null) throw noSuchUpload(uploadId);
    const file = files.open(ref);
    try {
      yield* file;
    } catch (error) {
      throw error instanceof MissingFileError ? noSuchUpload(uploadId) : error;
    } finally {
      file.destroy();
    }
  }
  return streamOf(read());
}

/** @throws InputError `not_found` */
export async function removeUpload(context: Context, environmentId: number, uploadId: string): Promise<void> {
  const removed = await removeAll(context, await condemnUpload(context.db, environmentId, uploadId));
  if (removed === 0) throw noSuchUpload(uploadId);
}

/**
 * Removes an upload that has been loaded, if a capability of the environment forbids storing the
 * text of some loads.
 */
export async function removeLoadedUpload(
  context: Context & Pick<LoadContext, 'secrets'>,
  environmentId: number,
  uploadId: string,
  { uses }: Pick<Load, 'uses'>,
): Promise<void> {
  if (context.secrets.some(({ use }) => uses.includes(use)))
    await removeAll(context, await condemnUpload(context.db, environmentId, uploadId));
}

async function removeAll(context: Context, uploads: readonly CondemnedUpload[]): Promise<number> {
  await removeFiles(context, uploads);
  if (uploads.length > 0) await forgetUploads(context.db, uploads);
  return uploads.length;
}

/**
 * Removes the files of uploads. Must be called before the rows of these uploads are deleted,
 * because these rows show which files remain after a crash.
 */
export async function removeFiles(
  { files }: Pick<Context, 'files'>,
  uploads: readonly CondemnedUpload[],
): Promise<void> {
  for (const { ref } of uploads) if (ref !== null) await files.remove(ref);
}

/** Hints of a later request take precedence. */
export function hintsOf({ filename, contentType, isGzip }: Upload): ReceiveHints {
  return {
    filename: filename ?? undefined,
    contentType: contentType ?? undefined,
    contentEncodingGzip: isGzip,
  };
}

const uploadsPerBatch = 100;

/** Removes expired uploads. Two calls may run at the same time. */
export async function removeExpiredUploads(context: Context): Promise<number> {
  let removed = 0;
  while (true) {
    const count = await removeAll(context, await condemnExpiredUploads(context.db, uploadsPerBatch));
    removed += count;
    if (count < uploadsPerBatch) return removed;
  }
}

function noSuchUpload(uploadId: string): Error {
  const message = 'There is no such upload, or it has expired. Send the file again';
  return inputError('not_found', message, `upload_id: ${uploadId}`);
}
