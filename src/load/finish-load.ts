import { ConflictError, Fault, Interrupted } from '../domain/errors.ts';
import { jobFields } from '../domain/job-fields.ts';
import { HEARTBEAT_MS, MAX_CHUNK_FAILURES, MAX_TIMEOUTS } from '../domain/limits.ts';
import { ALL_RECORDS_REFUSED } from '../domain/load.ts';
import { balances } from '../domain/tally.ts';
import { ringForDeliveries } from '../notifications/record-end.ts';
import type { Database } from '../postgres/database.ts';
import {
  claimFinish,
  completeLoad,
  type FinishClaim,
  failFinish,
  holdsFinish,
  readFinishState,
  releaseFinish,
} from '../postgres/ledger/finish.ts';
import { readFirstReject, readRejectsSource } from '../postgres/ledger/read-rejects.ts';
import { resolveRepeats } from '../postgres/ledger/repeats.ts';
import { endFinishSession, nameFinishSession } from '../postgres/ledger/sessions.ts';
import { describeFailure, isTimeout, isTransient } from '../postgres/sqlstate.ts';
import type { DueDelivery } from '../postgres/stores/deliveries.ts';
import { inTransaction } from '../postgres/transaction.ts';
import type { LoadContext } from './context.ts';
import { dispatchLane } from './dispatch.ts';
import { type Failure, failLoad, tooManyRejects } from './end-load.ts';
import { explainRefusals } from './explain-refusals.ts';
import { countRejects } from './inspect-load.ts';
import { keepAlive } from './keep-alive.ts';
import { recordLoadEnd } from './record-load-end.ts';
import { replayLoad } from './replay-load.ts';
import { type Hurry, noHurry, untilHurry } from './until-hurry.ts';

/**
 * Ends a load whose chunks are all done: settle keys that stood in several chunks, replay those written out of
 * order, check that the ledger balances, complete, start the next of the lane. May be called twice or late: false then,
 * there was nothing to do. When there is no time left it is given back, wherever it is.
 */
export async function finishLoad(
  context: LoadContext,
  loadId: number,
  hurry: Hurry = noHurry,
): Promise<boolean> {
  const claim = await claimFinish(context.db, loadId);
  if (claim === null) return false;
  const heartbeat = keepAlive(HEARTBEAT_MS, () => holdsFinish(context.db, claim));
  let due: readonly DueDelivery[];
  try {
    due = await untilHurry(hurry, () => settle(context, claim));
  } catch (error) {
    heartbeat.stop();
    await giveBack(context, claim, error);
    return true;
  } finally {
    heartbeat.stop();
  }
  await dispatchLane(context, claim.environmentId);
  await ringForDeliveries(context, due);
  return true;
}

async function settle(context: LoadContext, claim: FinishClaim): Promise<DueDelivery[]> {
  if (claim.repeatsToResolve) await settleRepeats(context, claim);
  await replayLoad(context, claim);
  return complete(context, claim);
}

async function settleRepeats(context: LoadContext, claim: FinishClaim): Promise<void> {
  await inTransaction(context.pool, async ({ db }) => {
    await nameFinishSession(db, claim);
    await resolveRepeats(db, claim);
    if (!(await holdsFinish(db, claim))) throw new ConflictError('another worker finishes the load');
  });
}

/** The commit that completes a load is synchronous: with it, all that its chunks wrote is on disk. */
async function complete(context: LoadContext, claim: FinishClaim): Promise<DueDelivery[]> {
  const ended = await inTransaction(context.pool, async ({ db }) => {
    await nameFinishSession(db, claim);
    if (!(await holdsFinish(db, claim))) throw new ConflictError('another worker finishes the load');
    const { tally, totalRows, openChunks, maxErrors } = await readFinishState(db, claim.loadId);
    if (!balances(tally) || tally.read !== totalRows) {
      throw new Fault(`the ledger does not balance: ${JSON.stringify(tally)}, ${totalRows} records received`);
    }
    if (openChunks > 0) throw new Fault(`${openChunks} chunks are not done, though all were counted as done`);
    if (maxErrors !== null && tally.rejected > maxErrors) {
      throw new LoadFails(tooManyRejects(tally.rejected, maxErrors));
    }
    if (tally.read > 0 && tally.rejected === tally.read) throw new LoadFails(await allRefused(db, claim));
    await completeLoad(db, claim);
    return { tally, due: await recordLoadEnd(context, db, claim.environmentId, claim.jobId) };
  });
  context.log.info({ ...jobFields(claim), ...ended.tally }, 'load completed');
  return ended.due;
}

/** Nothing broke: the load ends failed, and this is why. */
class LoadFails extends Error {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.message);
    this.failure = failure;
  }
}

async function allRefused(db: Database, { environmentId, jobId, loadId }: FinishClaim): Promise<Failure> {
  const source = await readRejectsSource(db, environmentId, jobId);
  const byCode = await countRejects({ db }, environmentId, jobId);
  const sample = await readFirstReject(db, loadId, Object.keys(byCode)[0] ?? '');
  if (source === null || sample === null)
    throw new Fault('all records were refused, and none of them was kept');
  const message = explainRefusals({ header: source.header, byCode, sample });
  return { code: ALL_RECORDS_REFUSED, message };
}

async function giveBack(context: LoadContext, claim: FinishClaim, error: unknown): Promise<void> {
  const fields = { ...jobFields(claim), err: error, attempt: claim.attempt };
  if (error instanceof ConflictError) return;
  if (error instanceof Interrupted) return interrupt(context, claim);
  if (error instanceof LoadFails) return failLoad(context, claim.loadId, error.failure);
  const message = error instanceof Error ? error.message : String(error);
  if (isTransient(error) && !isTimeout(error)) {
    context.log.warn(fields, 'finish given back; it will be tried again');
    await releaseFinish(context.db, claim, message).catch(() => undefined);
    return;
  }
  context.log.error(fields, 'finish failed');
  const failures = await failFinish(context.db, claim, message);
  if (failures >= (isTimeout(error) ? MAX_TIMEOUTS : MAX_CHUNK_FAILURES) || error instanceof Fault) {
    await failLoad(context, claim.loadId, describeFailure(error, 'finish_failed'));
  }
}

/** No attempt is spent by it; see `processChunk`. */
async function interrupt({ db, log }: LoadContext, claim: FinishClaim): Promise<void> {
  const fields = { ...jobFields(claim), attempt: claim.attempt };
  try {
    await endFinishSession(db, claim);
    await releaseFinish(db, claim);
    log.info(fields, 'finish given back: the worker stops');
  } catch (error) {
    log.warn({ ...fields, err: error }, 'finish could not be given back; its lease runs out instead');
  }
}
