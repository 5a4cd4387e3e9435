/* Uploads: files that are kept as they were sent, to be inspected and then loaded without being sent again. */
import { uuidv7 } from 'uuidv7';
import { inputError, TransientError } from '../domain/errors.ts';
import { inTransaction } from '../postgres/database.ts';
import { takeReceived } from '../postgres/stores/received-files.ts';
import {
  findExpiredUploads,
  findUpload,
  forgetUploads,
  insertUpload,
  type Upload,
} from '../postgres/stores/uploads.ts';
import { receivingStore } from './accept-load.ts';
import type { LoadContext } from './context.ts';
import { Intake, type ReceiveLimits } from './receive/intake.ts';
import type { ReceiveHints } from './receive/receive.ts';

/** How long a file is kept that was sent to be inspected. */
const UPLOAD_KEPT_MS = 24 * 60 * 60 * 1000;

/** What the sender says of the file. */
export interface UploadDescription {
  readonly filename: string | null;
  readonly contentType: string | null;
  readonly isGzip: boolean;
}

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
    ...said,
    uploadId: uuidv7(),
    ref,
    fileSize: intake.receivedBytes,
    sha256: intake.sha256(),
  };
  return inTransaction(context.pool, async ({ db }) => {
    if (!(await takeReceived(db, ref))) throw new TransientError('the file waited too long to be kept');
    return insertUpload(db, environmentId, upload, UPLOAD_KEPT_MS);
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
  throw inputError(
    'not_found',
    'there is no such upload, or it has expired; send the file again',
    `upload_id: ${uploadId}`,
  );
}

/** Before it expires. */
export async function removeUpload(
  context: Pick<LoadContext, 'db' | 'files'>,
  { uploadId, ref }: Upload,
): Promise<void> {
  await context.files.remove(ref);
  await forgetUploads(context.db, [{ uploadId, ref }]);
}

/** What `receive` is to know of the upload, where nobody says otherwise. */
export function hintsOf({ filename, contentType, isGzip }: Upload): ReceiveHints {
  return {
    filename: filename ?? undefined,
    contentType: contentType ?? undefined,
    contentEncodingGzip: isGzip,
  };
}

const uploadsPerBatch = 100;

/** Removes those that have expired; how many. Harmless to do twice at once. */
export async function removeExpiredUploads(context: Pick<LoadContext, 'db' | 'files'>): Promise<number> {
  let removed = 0;
  for (;;) {
    const expired = await findExpiredUploads(context.db, uploadsPerBatch);
    for (const { ref } of expired) await context.files.remove(ref);
    if (expired.length > 0) await forgetUploads(context.db, expired);
    removed += expired.length;
    if (expired.length < uploadsPerBatch) return removed;
  }
}
