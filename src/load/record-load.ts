import { createHash } from 'node:crypto';
import { inputError, TransientError } from '../base/errors.ts';
import type { LoadEntity } from '../domain/entity.ts';
import { countLimits } from '../domain/guards.ts';
import type { LoadOptions, LoadPass } from '../domain/load.ts';
import type { Database } from '../postgres/database.ts';
import { claimIdempotencyKey, storeAnswer } from '../tasks/idempotency.ts';
import type { Accepted, AcceptRequest, LoadRequest } from './accept-request.ts';
import type { LoadContext } from './context.ts';
import { findDuplicate, lockBytes } from './read-store.ts';
import type { LoadSeam } from './seam.ts';
import { insertLoad } from './store.ts';
import { takeReceived } from './upload-store.ts';

/* Writes loads to the ledger: once per idempotency key and, if requested, once per file. */

export async function writeLoad(
  context: Pick<LoadContext, 'db' | 'acts' | 'loads' | 'records'>,
  request: LoadRequest,
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
    if (idempotencyKey !== null)
      await storeAnswer(db, environmentId, idempotencyKey, { job_id: duplicateOf });
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
  await context.acts.record(db, {
    action: 'load.accepted',
    environmentId,
    thing: jobId,
    details: { type: request.type, records: received.totalRows, bytes: received.receivedBytes },
  });
  return { jobId, created: true };
}

/**
 * Returns an earlier load of the same file, or `null`.
 * @throws InputError `duplicate_file`
 */
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
  // Unfinished loads also count as earlier loads. Otherwise, a client that sends its file again
  // after a crash would load the file twice.
  await lockBytes(db, environmentId, sha256);
  const same = await findDuplicate(db, loads, environmentId, reading, ['queued', 'processing', 'held']);
  if (same === null || options.ifDuplicate === 'skip') return same;
  throw inputError(
    'duplicate_file',
    'The same file was loaded before, or is being loaded',
    `job_id: ${same}`,
  );
}

/**
 * Returns the first pass of the load. Guards are checked before anything is written. Limits of
 * changes require a plan (`guard`). A volume guard and `max_errors` require only that the records
 * are checked (`validate`). A single-chunk load checks `max_errors` while it loads.
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
