/*
 * Uploads that go on after a lost connection: created with the length of the file, then appended to from where the request before
 * ended. Promises: a byte counts once it is stored and in the ledger, and only then; of a request that breaks off everything that
 * came counts; of two requests that append at once the later alone goes on.
 */
import { createHash, type Hash } from 'node:crypto';
import { uuidv7 } from 'uuidv7';
import { type InputError, inputError, TransientError } from '../domain/errors.ts';
import {
  MAX_OPEN_UPLOADS,
  MAX_UPLOAD_APPENDS,
  MAX_UPLOAD_PARTS_OF_ONE,
  UPLOAD_KEPT_MS,
  UPLOAD_PART_BYTES,
} from '../domain/limits.ts';
import type { FileRef } from '../files/file-store.ts';
import { inTransaction } from '../postgres/database.ts';
import {
  type AppendClaim,
  addPart,
  claimAppend,
  countOpenUploads,
  insertUpload,
  recordHash,
  takeReceived,
  type Upload,
} from '../postgres/stores/uploads.ts';
import { discardReceived, receivingStore } from './accept-load.ts';
import type { LoadContext } from './context.ts';
import { type ReceiveLimits, readNext, UploadRate } from './receive/intake.ts';
import { completeUpload, requireUpload, type UploadDescription } from './uploads.ts';

type Context = Pick<LoadContext, 'pool' | 'db' | 'files'>;

/**
 * Room for a file that is to come, kept for UPLOAD_KEPT_MS after the last of its bytes.
 * @throws InputError `empty_file`, `payload_too_large`; `rate_limited` where MAX_OPEN_UPLOADS of the environment are incomplete.
 */
export async function createUpload(
  { pool }: Pick<LoadContext, 'pool'>,
  environmentId: number,
  fileSize: number,
  said: UploadDescription,
  { maxUploadBytes }: ReceiveLimits,
): Promise<Upload> {
  if (fileSize === 0) throw inputError('empty_file', 'The file is empty');
  if (fileSize > maxUploadBytes) {
    const message = `The upload is larger than ${maxUploadBytes} bytes`;
    throw inputError('payload_too_large', message, `Upload-Length: ${fileSize}`);
  }
  return inTransaction(pool, async ({ db }) => {
    if ((await countOpenUploads(db, environmentId)) >= MAX_OPEN_UPLOADS) {
      const message = `This environment has ${MAX_OPEN_UPLOADS} uploads that are incomplete; go on with some, or remove them`;
      throw inputError('rate_limited', message, 'GET /v1/uploads');
    }
    const upload = { ...said, uploadId: uuidv7(), fileSize, receivedBytes: 0, sha256: null };
    return insertUpload(db, environmentId, upload, UPLOAD_KEPT_MS);
  });
}

/** A request's share of an upload. */
export interface Appended {
  /** The offset in the file, as the sender gives it. */
  readonly offset: number;
  /** Bytes that are to come; null: the sender does not say. */
  readonly announcedBytes: number | null;
  /** Asks for them; called once, when they are wanted. */
  open(): AsyncIterable<Uint8Array>;
}

/**
 * Appends to an upload; returns it as it is then.
 * @throws InputError `not_found`, `offset_conflict`, `payload_too_large`, `upload_too_slow`; TransientError for the store; what the
 * source throws. What had come until then counts, except where more came than the file has.
 */
export async function appendToUpload(
  context: Context,
  environmentId: number,
  uploadId: string,
  appended: Appended,
  limits: ReceiveLimits,
  signal: AbortSignal,
): Promise<Upload> {
  const upload = await requireUpload(context, environmentId, uploadId);
  const { offset, announcedBytes } = appended;
  if (offset !== upload.receivedBytes) throw offsetConflict(upload.receivedBytes);
  if (offset + (announcedBytes ?? 0) > upload.fileSize) throw tooMuch(upload);
  const claim = await claimAppend(context.db, uploadId, offset);
  if (claim === null) {
    const { receivedBytes } = await requireUpload(context, environmentId, uploadId);
    throw offsetConflict(receivedBytes);
  }
  if (claim.attempt > MAX_UPLOAD_APPENDS) throw tooOften();
  const arrival = new Arrival(appended.open(), limits, signal);
  const at = await storeArrival(context, environmentId, upload, claim, arrival);
  if (arrival.failure !== null) throw arrival.failure;
  if (at < upload.fileSize) return requireUpload(context, environmentId, uploadId);
  if (offset === 0) await recordHash(context.db, uploadId, arrival.hash.digest('hex'));
  return completeUpload(context, await requireUpload(context, environmentId, uploadId));
}

/** The body of one request, hashed and held to the limits. A body that breaks off is not an error: the bytes before it count. */
class Arrival {
  /** Why it broke off; null: it did not. */
  failure: unknown = null;
  isOver = false;
  readonly hash: Hash = createHash('sha256');
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #rate: UploadRate;
  readonly #stallMs: number;
  readonly #signal: AbortSignal;

  constructor(source: AsyncIterable<Uint8Array>, limits: ReceiveLimits, signal: AbortSignal) {
    this.#source = source[Symbol.asyncIterator]();
    this.#rate = new UploadRate(limits.minBytesPerSecond);
    this.#stallMs = limits.stallMs;
    this.#signal = signal;
  }

  async next(): Promise<Uint8Array | null> {
    if (this.isOver) return null;
    try {
      const before = performance.now();
      const result = await readNext(this.#source, this.#stallMs, this.#signal);
      if (result.done !== true) {
        this.#rate.note(performance.now() - before, result.value.length);
        this.hash.update(result.value);
        return result.value;
      }
    } catch (error) {
      this.failure = error;
    }
    this.isOver = true;
    return null;
  }
}

/** Part after part; returns where the upload ends then. */
async function storeArrival(
  context: Context,
  environmentId: number,
  upload: Upload,
  claim: AppendClaim,
  arrival: Arrival,
): Promise<number> {
  let at = upload.receivedBytes;
  while (!arrival.isOver) {
    const first = await arrival.next();
    if (first === null) break;
    const part = await storePart(context, environmentId, upload, at, first, arrival);
    await countPart(context, claim, at, part);
    at += part.bytes;
  }
  return at;
}

interface StoredPart {
  readonly ref: FileRef;
  readonly bytes: number;
}

/** Stores bytes up to the end of the request or of a part. The last part of a file ends with the request. */
async function storePart(
  context: Context,
  environmentId: number,
  upload: Upload,
  start: number,
  first: Uint8Array,
  arrival: Arrival,
): Promise<StoredPart> {
  const partBytes = Math.max(UPLOAD_PART_BYTES, Math.ceil(upload.fileSize / MAX_UPLOAD_PARTS_OF_ONE));
  const writer = await receivingStore(context, environmentId).create();
  let bytes = 0;
  try {
    for (let piece: Uint8Array | null = first; piece !== null; piece = await arrival.next()) {
      bytes += piece.length;
      if (start + bytes > upload.fileSize) throw tooMuch(upload);
      await writer.write(piece);
      if (bytes >= partBytes && start + bytes < upload.fileSize) break;
    }
    await writer.commit();
  } catch (error) {
    await writer.discard().catch(() => undefined);
    throw error;
  }
  return { ref: writer.ref, bytes };
}

/** @throws InputError `offset_conflict` if another request has claimed the upload, or it is being removed. */
async function countPart(
  context: Context,
  claim: AppendClaim,
  start: number,
  { ref, bytes }: StoredPart,
): Promise<void> {
  // If its COMMIT gets no answer, the sweep finds out whether the part counts: its file is in the ledger either way.
  const counts = await inTransaction(context.pool, async ({ db }) => {
    if (!(await addPart(db, claim, { start, end: start + bytes, ref }, UPLOAD_KEPT_MS))) return false;
    if (!(await takeReceived(db, ref))) throw new TransientError('the file waited too long to be kept');
    return true;
  });
  if (counts) return;
  await discardReceived(context, ref);
  throw inputError('offset_conflict', 'Another request has gone on with this upload, or it is being removed');
}

function offsetConflict(receivedBytes: number): InputError {
  const message =
    'The upload does not end where this request begins; ask where it ends, and go on from there';
  return inputError('offset_conflict', message, `Upload-Offset: ${receivedBytes}`);
}

function tooMuch({ fileSize }: Upload): InputError {
  const message = 'More has come than the upload was created for; create another';
  return inputError('payload_too_large', message, `Upload-Length: ${fileSize}`);
}

function tooOften(): InputError {
  const message = `${MAX_UPLOAD_APPENDS} requests have gone on with this upload; create another, and send more with each`;
  return inputError('payload_too_large', message);
}
