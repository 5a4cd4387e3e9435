import { ConflictError, Fault, Interrupted } from '../domain/errors.ts';
import { jobFields } from '../domain/job-fields.ts';
import { HEARTBEAT_MS, MAX_CHUNK_FAILURES, MAX_TIMEOUTS } from '../domain/limits.ts';
import type { Reject } from '../domain/reject.ts';
import type { Rows } from '../mapping/rows.ts';
import {
  type ChunkClaim,
  type ChunkTally,
  claimChunk,
  claimNextChunk,
  failChunk,
  finishChunk,
  type LoadProgress,
  releaseChunk,
  renewChunk,
} from '../postgres/ledger/chunks.ts';
import { type LoadSource, readLoadSource } from '../postgres/ledger/load-source.ts';
import { insertRejects } from '../postgres/ledger/rejects.ts';
import { endChunkSession, endEarlierAttempts, nameChunkSession } from '../postgres/ledger/sessions.ts';
import { newUserStamp } from '../postgres/merge/insert-new.ts';
import { describeFailure, isDataError, isDeadlock, isTimeout, isTransient } from '../postgres/sqlstate.ts';
import { inTransaction, type Transaction } from '../postgres/transaction.ts';
import type { LoadContext } from './context.ts';
import { ringQuietly } from './dispatch.ts';
import { failLoad, tooManyRejects } from './end-load.ts';
import { canBeInserted, expectsNewUsers, insertRows, learn } from './insert-rows.ts';
import { keepAlive } from './keep-alive.ts';
import { mergeRows, mergeRowsCarefully } from './merge-rows.ts';
import { learnProperties } from './note-properties.ts';
import { type ChunkReader, createChunkReader } from './read-chunk.ts';
import { type Hurry, noHurry, untilHurry } from './until-hurry.ts';

const notOurs = 'another attempt owns the chunk, or its load has ended';

/**
 * Does one chunk of one load: claim, read and map, merge, settle the ledger; the last two in one transaction.
 * May be called twice, late, or for a chunk that is done: then it does nothing. When there is no time left the chunk is
 * given back, wherever it is.
 */
export async function processChunk(
  context: LoadContext,
  loadId: number,
  chunkNo: number,
  hurry: Hurry = noHurry,
): Promise<void> {
  const claim = await claimChunk(context.db, loadId, chunkNo);
  if (claim !== null) await doChunk(context, claim, hurry);
}

/** Does the chunk of a load that is next, as `processChunk`. False: there is none. */
export async function processNextChunk(context: LoadContext, loadId: number, hurry: Hurry): Promise<boolean> {
  const claim = await claimNextChunk(context.db, loadId);
  if (claim !== null) await doChunk(context, claim, hurry);
  return claim !== null;
}

async function doChunk(context: LoadContext, claim: ChunkClaim, hurry: Hurry): Promise<void> {
  const heartbeat = keepAlive(HEARTBEAT_MS, () => renewChunk(context.db, claim));
  let progress: LoadProgress;
  try {
    progress = await untilHurry(hurry, () => loadChunk(context, claim));
  } catch (error) {
    heartbeat.stop();
    await giveBack(context, claim, error);
    return;
  } finally {
    heartbeat.stop();
  }
  await followUp(context, claim.loadId, progress);
}

async function loadChunk(context: LoadContext, claim: ChunkClaim): Promise<LoadProgress> {
  await endEarlierAttempts(context.db, claim);
  const source = await readLoadSource(context.db, claim.loadId);
  return context.experience.withRows(async (rows) => {
    const reader = createChunkReader(source, context.files, rows);
    const inserted = await tryInserting(context, source, claim, reader);
    if (inserted !== null) return inserted;
    await reader.read(claim);
    await learnProperties(context, source, rows);
    try {
      return await mergeChunk(context, source, claim, rows, false);
    } catch (error) {
      if (!isDataError(error)) throw error;
      // What an attempt writes that came too late collides with what the chunk's owner has written.
      if (!(await renewChunk(context.db, claim))) throw new ConflictError(notOurs);
      context.log.warn(
        { ...jobFields(claim), err: error, chunk: claim.chunkNo },
        'chunk is merged without the records that the database refuses',
      );
      return mergeChunk(context, source, claim, rows, true);
    }
  });
}

/** The short way for chunks whose users are all new; null if this is none, and then nothing was written. */
async function tryInserting(
  context: LoadContext,
  source: LoadSource,
  claim: ChunkClaim,
  reader: ChunkReader,
): Promise<LoadProgress | null> {
  const experience = context.experience.of(claim.loadId);
  if (claim.oversized || !(await expectsNewUsers(context.db, source, experience))) return null;
  const rows = await reader.read(claim, newUserStamp({ ...source, chunkNo: claim.chunkNo }));
  if (canBeInserted(rows)) {
    await learnProperties(context, source, rows);
    try {
      return await settleChunk(context, claim, rows, (transaction) =>
        insertRows(transaction, source, claim, rows),
      );
    } catch (error) {
      // A key is known after all (or another defect of the data, which merging names): from now on, merge.
      if (!isDataError(error) && !isDeadlock(error)) throw error;
    }
  }
  experience.users = 'known';
  return null;
}

async function mergeChunk(
  context: LoadContext,
  source: LoadSource,
  claim: ChunkClaim,
  rows: Rows,
  careful: boolean,
): Promise<LoadProgress> {
  const refused: Reject[] = [];
  return settleChunk(context, claim, rows, async (transaction) => {
    refused.length = 0;
    const tally = careful
      ? await mergeRowsCarefully(transaction, source, claim, rows, (record, message) =>
          refused.push(rows.rejectRecord(record, message, claim)),
        )
      : await mergeRows(transaction, source, claim, rows);
    await insertRejects(transaction.db, claim.loadId, refused);
    learn(context.experience.of(claim.loadId), tally);
    return tally;
  });
}

/** One transaction: the rows by way of `write`, the rejects, the tally, and that the chunk is done. */
function settleChunk(
  context: LoadContext,
  claim: ChunkClaim,
  rows: Rows,
  write: (transaction: Transaction) => Promise<ChunkTally>,
): Promise<LoadProgress> {
  return inTransaction(
    context.pool,
    async (transaction) => {
      await nameChunkSession(transaction.db, claim);
      const tally = await write(transaction);
      await insertRejects(transaction.db, claim.loadId, rows.rejects);
      const progress = await finishChunk(transaction.db, claim, tally);
      if (progress === null) throw new ConflictError(notOurs);
      return progress;
    },
    // Rows and ledger are lost together and done again together; completing the load waits for the disk.
    { asynchronous: true },
  );
}

async function giveBack(context: LoadContext, claim: ChunkClaim, error: unknown): Promise<void> {
  if (error instanceof ConflictError) {
    context.log.debug({ ...jobFields(claim), chunk: claim.chunkNo }, error.message);
    return;
  }
  if (error instanceof Interrupted) return interrupt(context, claim);
  const fields = { ...jobFields(claim), err: error, chunk: claim.chunkNo, attempt: claim.attempt };
  const message = error instanceof Error ? error.message : String(error);
  if (isTransient(error) && !isTimeout(error)) {
    context.log.warn(fields, 'chunk given back; it will be tried again');
    // If the database is away this fails too, and the lease runs out instead.
    await releaseChunk(context.db, claim, message).catch(() => undefined);
    return;
  }
  context.log.error(fields, 'chunk failed');
  const failures = await failChunk(context.db, claim, message, isTimeout(error));
  if (failures >= (isTimeout(error) ? MAX_TIMEOUTS : MAX_CHUNK_FAILURES) || error instanceof Fault) {
    const failure = describeFailure(error, 'chunk_failed');
    await failLoad(context, claim.loadId, {
      ...failure,
      message: `chunk ${claim.chunkNo}: ${failure.message}`,
    });
  }
}

/**
 * No attempt is spent by it. The session goes first, with whatever lock it waits for or holds; what the attempt may write
 * after that is fenced, as the chunk is no longer running.
 */
async function interrupt({ db, log }: LoadContext, claim: ChunkClaim): Promise<void> {
  const fields = { ...jobFields(claim), chunk: claim.chunkNo, attempt: claim.attempt };
  try {
    await endChunkSession(db, claim);
    await releaseChunk(db, claim);
    log.info(fields, 'chunk given back: the worker stops');
  } catch (error) {
    log.warn({ ...fields, err: error }, 'chunk could not be given back; its lease runs out instead');
  }
}

/** What the chunk's end may mean for its load. Should this process die here, the reconciler does it. */
async function followUp(context: LoadContext, loadId: number, progress: LoadProgress): Promise<void> {
  if (progress.maxErrors !== null && progress.rejected > progress.maxErrors) {
    await failLoad(context, loadId, tooManyRejects(progress.rejected, progress.maxErrors));
  } else if (progress.chunksDone === progress.chunkCount) {
    await ringQuietly(context, () => context.bell.ringFinish(loadId, 0));
  }
}
