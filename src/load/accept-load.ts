/*
 * The way in of files: a load. `receive/` stores and cuts the file; here it is accepted, in one transaction
 * with its chunks; `process-chunk.ts` maps and merges a chunk, `finish-load.ts` replays what came out of
 * order and closes the balance; `end-load.ts` has the ends that are none of these. Promises: read =
 * inserted + updated + unchanged + removed + superseded + rejected, and the result is that of reading the file from
 * top to bottom.
 */

import { createHash } from 'node:crypto';
import { inputError, TransientError } from '../base/errors.ts';
import { COMMIT_DOUBT_MS, SMALL_LOAD_BYTES } from '../base/limits.ts';
import { uuidv7 } from '../base/uuid.ts';
import { resolveMap } from '../domain/column-map.ts';
import type { LoadEntity } from '../domain/entity.ts';
import { countLimits } from '../domain/guards.ts';
import type { LoadOptions, LoadPass, LoadType } from '../domain/load.ts';
import { jobFields, type Origin } from '../domain/task.ts';
import { type FileRef, writeWhole } from '../files/file-store.ts';
import { type Database, inTransaction } from '../postgres/database.ts';
import { claimIdempotencyKey, keepAnswer } from '../tasks/idempotency.ts';
import type { LoadContext } from './context.ts';
import { startLaneSoon, startSmallLoadSoon } from './end-load.ts';
import { findForeign, foreignProblem, readBeginning } from './foreign-file.ts';
import { planFile, requireRecord } from './map/column-plan.ts';
import { findDuplicate, isInLedger, lockBytes } from './read-store.ts';
import type { ReceivedFile } from './receive/receive.ts';
import { requireRewriter, rewriteFile } from './receive/rewrite.ts';
import { discardReceived, receivingStore } from './received.ts';
import { findMended, readAsMended } from './rejects/mends.ts';
import { askedFor, type LoadSeam } from './seam.ts';
import { insertLoad } from './store.ts';
import { condemnReceived, takeReceived } from './upload-store.ts';

export interface AcceptRequest {
  readonly environmentId: number;
  readonly type: LoadType;
  /** The name that the caller gives; shown, never used as a path. */
  readonly filename: string;
  readonly received: ReceivedFile;
  readonly options: LoadOptions;
  readonly idempotencyKey: string | null;
  /** The id of the HTTP request, if it came by one. */
  readonly requestId?: string;
  /** The job whose stored file it is; by default it was sent. */
  readonly fileOf?: string | null;
  /** Who or what started it; by default that is not known. */
  readonly origin?: Origin;
  /** Part of the same transaction: for a caller whose own books must say what the ledger says. */
  readonly inSameTransaction?: (db: Database, accepted: Accepted) => Promise<void>;
}

export interface Accepted {
  readonly jobId: string;
  /** False: the job was there already (same idempotency key, or `if_duplicate=skip`). */
  readonly created: boolean;
}

/**
 * Turns a received file into a load: ledger first, in one transaction, then the queue. Unless a new load is
 * created the received file is removed. Throws `InputError` (columns, idempotency, duplicate), and what `inSameTransaction` throws.
 */
export async function acceptLoad(context: LoadContext, asReceived: AcceptRequest): Promise<Accepted> {
  const request = await prepare(context, asReceived);
  const { received } = request;
  const jobId = uuidv7();
  const accepted = await commitLoad(context, request, jobId);
  if (!accepted.created) {
    await discardReceived(context, received.ref);
    return accepted;
  }
  const fields = {
    ...jobFields({ jobId, requestId: request.requestId ?? null }),
    type: request.type,
    rows: received.totalRows,
    bytes: received.receivedBytes,
  };
  context.log.info(fields, 'load accepted');
  if (isSmall(received)) startSmallLoadSoon(context, request.environmentId, jobId);
  else startLaneSoon(context, request.environmentId);
  return accepted;
}

function isSmall({ chunks }: ReceivedFile): boolean {
  const [chunk] = chunks;
  return chunks.length === 1 && chunk !== undefined && chunk.byteEnd - chunk.byteStart <= SMALL_LOAD_BYTES;
}

/** `mends`: the load whose refused records the file holds. */
type Request = AcceptRequest & { readonly mends: number | null };

/** Finds what the file mends, and rewrites one that has a preset. */
async function prepare(context: LoadContext, request: AcceptRequest): Promise<Request> {
  const { environmentId, received } = request;
  try {
    const mended = await findMended(context, environmentId, received);
    const read = mended === null ? request : readAsMended(request, mended);
    return await rewriteForeign(context, { ...read, mends: mended?.loadId ?? null });
  } catch (error) {
    await discardReceived(context, received.ref);
    throw error;
  }
}

async function commitLoad(context: LoadContext, request: Request, jobId: string): Promise<Accepted> {
  let isWritten = false;
  try {
    const named = withColumnNames(request);
    if (named.options.preset === null && named.options.entity === 'auto') await refuseForeign(context, named);
    const entity = resolveEntity(context, named);
    for (const seam of askedFor(context.loads, named.options.source))
      await seam.accept(context.db, named.options, entity);
    return await inTransaction(context.pool, async ({ db }) => {
      const accepted = await writeLoad({ ...context, db }, named, entity, jobId);
      await request.inSameTransaction?.(db, accepted);
      isWritten = true;
      return accepted;
    });
  } catch (error) {
    if (!isWritten) await discardReceived(context, request.received.ref);
    else if (await wasCommitted(context, request.received.ref, jobId, error)) return { jobId, created: true };
    throw error;
  }
}

/**
 * Tells whether a transaction is committed whose COMMIT was sent and not answered; if not, its file is removed. That it cannot be
 * seen in the ledger says nothing, since COMMIT may still be on its way: the row of the file does, which is locked until then.
 * If even that cannot be found out now, the file stays for the sweep: a load without its file would be worse than a file
 * without its load.
 */
async function wasCommitted(
  context: LoadContext,
  ref: FileRef,
  jobId: string,
  cause: unknown,
): Promise<boolean> {
  try {
    const isFree = await inTransaction(context.pool, ({ db }) => condemnReceived(db, ref, COMMIT_DOUBT_MS));
    if (!isFree) return await isInLedger(context.db, jobId);
  } catch {
    throw cause;
  }
  await discardReceived(context, ref);
  return false;
}

/** With a map that names the columns as the header does. */
function withColumnNames(request: Request): Request {
  const { received, options } = request;
  if (received.header === null) return request;
  const hasHeader = received.readAs.csv?.headerLine !== null;
  const map = resolveMap(options.map, received.header.columns, hasHeader);
  return { ...request, options: { ...options, map } };
}

/**
 * Rewrites a file that has a preset as records of ours.
 * @throws InputError `unrecognised_columns` for the file of another preset, and for options that do not fit.
 */
async function rewriteForeign(context: LoadContext, request: Request): Promise<Request> {
  const { received, options } = request;
  const { preset, source } = options;
  if (preset === null) return request;
  const rewriter = requireRewriter(context.rewriter);
  requirePresetFits(options);
  rewriter.requireFitting(options);
  requireColumns(options, received);
  await refuseForeign(context, request);
  const store = receivingStore(context);
  const writer = await store.create();
  const lines = rewriter.rewrite(store, received, preset, source);
  const rewritten = await rewriteFile(received, lines, (each) => writeWhole(writer, each));
  await store.remove(received.ref);
  return { ...request, received: rewritten };
}

/** Refuses a file of events that a load would turn into profiles, or read by the wrong preset. @throws InputError `unrecognised_columns`. */
async function refuseForeign({ files, rewriter }: LoadContext, request: AcceptRequest): Promise<void> {
  const { received, options } = request;
  if (options.preset === null && options.entity !== 'auto') return;
  const beginning = await readBeginning(files, received);
  const foreign = findForeign(beginning, received.header !== null, options, rewriter?.recognise ?? null);
  if (foreign !== null) throw foreignProblem(foreign, beginning.names);
}

/** In a CSV the header decides what the records are. */
function resolveEntity({ rewriter }: LoadContext, { received, options }: AcceptRequest): LoadEntity {
  rewriter?.requireFitting(options);
  if (options.preset !== null) return options.entity;
  requireColumns(options, received);
  if (received.object !== null) requireRecord(received.object, options.map);
  if (received.header === null) return options.entity;
  return planFile(received.header, options.map, options.entity, rewriter?.recognise).entity;
}

function requireColumns({ guard }: LoadOptions, { header, readAs }: ReceivedFile): void {
  if (header !== null || guard === null || guard === 'usual' || guard.columns === undefined) return;
  const message = `only CSV and workbooks have columns to compare; the file was read as ${readAs.format}: leave columns out`;
  throw inputError('invalid_field', message, 'guard');
}

function requirePresetFits({ map, source }: LoadOptions): void {
  if (source.types !== undefined)
    throw inputError('invalid_field', 'give types or preset, not both', 'types');
  if (Object.keys(map).length === 0) return;
  throw inputError('invalid_field', 'give map or preset, not both', 'preset');
}

async function writeLoad(
  context: Pick<LoadContext, 'db' | 'loads' | 'records'>,
  request: Request,
  entity: LoadEntity,
  jobId: string,
): Promise<Accepted> {
  const { db, loads } = context;
  const { environmentId, received, options, idempotencyKey } = request;
  if (idempotencyKey !== null) {
    const earlier = await claimIdempotencyKey(db, environmentId, idempotencyKey, digest(request), jobId);
    if (earlier !== null) return { jobId: earlier.jobId, created: false };
  }
  const duplicateOf = await findSame(db, loads, request, entity);
  if (duplicateOf !== null && options.ifDuplicate === 'skip') {
    if (idempotencyKey !== null) await keepAnswer(db, environmentId, idempotencyKey, { job_id: duplicateOf });
    return { jobId: duplicateOf, created: false };
  }
  if (!(await takeReceived(db, received.ref)))
    throw new TransientError('the file waited too long for its load');
  await insertLoad(context, {
    jobId,
    requestId: request.requestId ?? null,
    origin: request.origin ?? null,
    environmentId,
    type: request.type,
    entity,
    filename: request.filename,
    fileSize: received.receivedBytes,
    sha256: received.sha256,
    fileRef: received.ref,
    fileFormat: received.format,
    header: received.header,
    columnMap: options.map,
    source: options.source,
    readAs: received.readAs,
    preset: options.preset,
    totalRows: received.totalRows,
    pass: firstPass(options, received.chunks.length),
    limits: countLimits(options, received.totalRows),
    guard: options.guard,
    duplicateOf,
    fileOf: request.fileOf ?? null,
    ownFile: false,
    mends: request.mends,
    chunks: received.chunks,
  });
  return { jobId, created: true };
}

/** Returns the earlier load of the same file, or null. @throws InputError `duplicate_file` if there must not be one. */
async function findSame(
  db: Database,
  loads: readonly LoadSeam[],
  { environmentId, received, options }: AcceptRequest,
  entity: LoadEntity,
): Promise<string | null> {
  if (options.dryRun || options.plan) return null;
  const { sha256, format: fileFormat } = received;
  const reading = { ...options, entity, sha256, fileFormat };
  if (options.ifDuplicate === 'load') return findDuplicate(db, loads, environmentId, reading);
  // Whoever sends a file again after a crash must not load it twice: one that is under way counts too.
  await lockBytes(db, environmentId, sha256);
  const same = await findDuplicate(db, loads, environmentId, reading, ['queued', 'processing', 'held']);
  if (same === null || options.ifDuplicate === 'skip') return same;
  throw inputError(
    'duplicate_file',
    'the same file was loaded before, or is being loaded',
    `job_id: ${same}`,
  );
}

/**
 * Returns the first pass of the chunks. A guard is checked before anything is written. That of refused records needs no look at
 * stored rows, and in a load of one chunk not even a pass of its own.
 */
function firstPass(
  { plan, dryRun, maxErrors, maxChanged, maxRemovedValues, guard }: LoadOptions,
  chunks: number,
): LoadPass {
  const needsPlan = maxChanged !== null || maxRemovedValues !== null;
  if (plan || (dryRun && needsPlan)) return 'plan';
  if (dryRun) return 'dry_run';
  if (needsPlan) return 'guard';
  return guard !== null || (maxErrors !== null && chunks > 1) ? 'validate' : 'load';
}

function digest({ type, received, options }: AcceptRequest): Buffer {
  return createHash('sha256')
    .update(JSON.stringify([type, received.sha256, received.format, options]))
    .digest();
}
