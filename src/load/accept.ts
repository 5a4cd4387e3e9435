/*
 * A load brings the records of one file into the database. `receive/` stores the file and cuts it
 * into chunks. `acceptLoad` commits the load and its chunks to the ledger. Workers then merge the
 * chunks (`chunk.ts`), in any order. After the last chunk, `finish.ts` repeats the merge of keys
 * that several chunks contain, checks that the counts add up, and completes the load. `end.ts`
 * fails and cancels loads and starts the next job.
 * Each record is counted once: read = inserted + updated + unchanged + removed + superseded +
 * rejected. The result is the same as if the file were read from top to bottom.
 */

import { uuidv7 } from '../base/uuid.ts';
import { jobFields } from '../domain/task.ts';
import type { FileRef } from '../files/file-store.ts';
import { inTransaction } from '../postgres/database.ts';
import type { OwnPlace } from '../tasks/runner.ts';
import type { Accepted, AcceptRequest, LoadRequest } from './accept-request.ts';
import type { LoadContext } from './context.ts';
import { startLaneSoon } from './end.ts';
import { refuseForeign, resolveEntity, rewriteForeign, withColumnNames } from './fit-file.ts';
import { readBeginning } from './foreign-file.ts';
import { isInLedger } from './read-store.ts';
import { discardReceived } from './received.ts';
import { writeLoad } from './record-load.ts';
import { findMended, readAsMended } from './rejects/mends.ts';
import { hooksFor } from './seam.ts';
import { reservePlace, runSmallLoad, type StartedSmallLoad, startSmallLoad } from './small-load.ts';
import { condemnReceived } from './upload-store.ts';

/**
 * How long to wait for the outcome of a COMMIT that got no response, in milliseconds. If the COMMIT
 * never reached PostgreSQL, the idle session ends after 15 s.
 */
const COMMIT_DOUBT_MS = 20_000;

/**
 * @throws InputError for problems with columns, idempotency or duplicates. Errors from
 * `inSameTransaction` are also thrown.
 */
export async function acceptLoad(context: LoadContext, asReceived: AcceptRequest): Promise<Accepted> {
  const request = await prepare(context, asReceived);
  const { environmentId, received, type, requestId = null } = request;
  const place = reservePlace(context, received);
  try {
    const jobId = uuidv7();
    const { accepted, started } = await commitLoad(context, request, jobId, place);
    if (!accepted.created) {
      await discardReceived(context, received.ref);
      return accepted;
    }
    const size = { rows: received.totalRows, bytes: received.receivedBytes };
    context.log.info({ ...jobFields({ jobId, requestId }), type, ...size }, 'load accepted');
    if (started === null) startLaneSoon(context, environmentId);
    else void runSmallLoad(context, started);
    return accepted;
  } finally {
    place?.release();
  }
}

/**
 * Prepares the file for the load. If the file is a corrected file of rejects, finds the load that
 * refused these records. If a preset is set, rewrites the file.
 */
async function prepare(context: LoadContext, request: AcceptRequest): Promise<LoadRequest> {
  const { environmentId, received } = request;
  try {
    const beginning = await readBeginning(context.files, received);
    const mendedLoad = await findMended(context, environmentId, received, beginning);
    const adapted = mendedLoad === null ? request : readAsMended(request, mendedLoad);
    return await rewriteForeign(context, { ...adapted, beginning, mends: mendedLoad?.loadId ?? null });
  } catch (error) {
    await discardReceived(context, received.ref);
    throw error;
  }
}

interface CommittedLoad {
  readonly accepted: Accepted;
  /** The load, if the same transaction also started it. Otherwise `null`. */
  readonly started: StartedSmallLoad | null;
}

async function commitLoad(
  context: LoadContext,
  request: LoadRequest,
  jobId: string,
  place: OwnPlace | null,
): Promise<CommittedLoad> {
  let written: CommittedLoad | null = null;
  try {
    const named = withColumnNames(request);
    if (named.options.preset === null && named.options.entity === 'auto') refuseForeign(context, named);
    const entity = resolveEntity(context, named);
    for (const hooks of hooksFor(context.loads, named.options.source))
      await hooks.accept?.(context.db, named.options, entity);
    return await inTransaction(context.pool, async ({ db }) => {
      const accepted = await writeLoad({ ...context, db }, named, entity, jobId);
      await request.inSameTransaction?.(db, accepted);
      const started =
        place === null || !accepted.created
          ? null
          : await startSmallLoad(db, place, request.environmentId, jobId);
      written = { accepted, started };
      return written;
    });
  } catch (error) {
    if (written === null) await discardReceived(context, request.received.ref);
    else if (await wasCommitted(context, request.received.ref, jobId, error)) return written;
    throw error;
  }
}

/**
 * Returns whether a COMMIT that got no response took effect. A running COMMIT locks the row of the
 * file, so this function waits for that lock. If the COMMIT had no effect, removes the file. If the
 * outcome remains unknown, keeps the file, because a load without its file is worse than a file
 * without its load. The sweep removes files that no load uses.
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
