import pLimit from 'p-limit';
import { Fault, inputError } from '../base/errors.ts';
import { plural } from '../base/wording.ts';
import { outcomeOf } from '../domain/job.ts';
import { endedStatuses, HOLD_EXPIRED, type Tally } from '../domain/load.ts';
import {
  type DueTask,
  jobFields,
  type Origin,
  type TaskClaim,
  type TaskFailure,
  taskFields,
} from '../domain/task.ts';
import type { FileRef } from '../files/file-store.ts';
import { type Database, inTransaction } from '../postgres/database.ts';
import { claimJobAction } from '../tasks/idempotency.ts';
import { findLaneHead, idleLanes, lockLane, startDeletion } from '../tasks/lane-store.ts';
import { notifyQueue } from '../tasks/task-kind.ts';
import type { LoadContext } from './context.ts';
import {
  findExpiredHolds,
  cancelLoad as markCancelled,
  failLoad as markFailed,
  type StoppedLoad,
} from './end-store.ts';
import { readLoadEnd, readLoadResult, requireLoad } from './read-store.ts';
import { discardReceived } from './received.ts';
import { renderLoadDetail } from './render-load.ts';
import { hooksFor, secretOf } from './seam.ts';
import { releaseFile, startLoad } from './store.ts';

type LaneContext = Pick<LoadContext, 'pool' | 'queue' | 'log'>;
type Ending = Pick<LoadContext, 'acts' | 'baseUrl' | 'jobs' | 'loads' | 'secrets' | 'records'>;
export type EndContext = LaneContext & Ending & Pick<LoadContext, 'db' | 'files'>;

/** Fails a load. Its written rows remain. Does nothing if the load has already ended. */
export async function failLoad(context: EndContext, loadId: number, failure: TaskFailure): Promise<void> {
  const ended = await inTransaction(context.pool, async (transaction) => {
    const { db } = transaction;
    const load = await markFailed(transaction, loadId, failure);
    return load && { ...load, ...(await recordStop(context, db, load)) };
  });
  if (ended === null) return;
  context.log.warn({ ...jobFields(ended), code: failure.code }, `load failed: ${ended.failureMessage}`);
  await afterEnd(context, ended.environmentId, ended);
}

/**
 * Cancels a load, or discards a held one. Running chunks can no longer commit. Returns the time at
 * which the load was cancelled. If the idempotency key is repeated, this is the time of the first
 * call.
 * @throws InputError `not_found`, `job_not_cancellable`, `idempotency_conflict`
 */
export async function cancelLoad(
  context: LoadContext,
  environmentId: number,
  jobId: string,
  idempotencyKey: string | null = null,
  by: Origin | null = null,
): Promise<Date> {
  const { cancelledAt, end } = await inTransaction(context.pool, async (transaction) => {
    const { db } = transaction;
    const before = await claimJobAction(db, environmentId, 'cancel', jobId, idempotencyKey);
    if (before !== null) return { cancelledAt: before, end: null };
    const cancelled = await markCancelled(transaction, environmentId, jobId, by);
    if (cancelled === null) return { cancelledAt: await discardedAt(db, environmentId, jobId), end: null };
    await context.acts.record(db, { action: 'load.cancelled', environmentId, thing: jobId });
    return { cancelledAt: cancelled.at, end: await recordStop(context, db, cancelled) };
  });
  if (end === null) return cancelledAt;
  context.log.info({ job_id: jobId }, 'load cancelled');
  await afterEnd(context, environmentId, end);
  return cancelledAt;
}

/** @throws InputError `not_found`, `job_not_cancellable` */
async function discardedAt(db: Database, environmentId: number, jobId: string): Promise<Date> {
  const { status, endedAt, held } = await requireLoad({ db }, environmentId, jobId);
  if (status === 'cancelled' && endedAt !== null && held?.decidedAt != null) return endedAt;
  throw inputError('job_not_cancellable', `The job is ${status} already`, `job_id: ${jobId}`);
}

/** Work that remains after the commit of the transaction that ended or held a load. */
export interface LoadEnd {
  readonly due: readonly DueTask[];
  /** File to remove, because a capability forbids storing it. `null` if the file is kept. */
  readonly file: FileRef | null;
}

/** If the file cannot be removed now, pruning removes it later. */
export async function afterEnd(
  context: EndContext,
  environmentId: number,
  { due, file }: LoadEnd,
): Promise<void> {
  // Usually, no job is waiting. `findLaneHead` finds this out without locking the lane.
  if ((await findLaneHead(context.db, environmentId)) !== null) await startLane(context, environmentId);
  await notifyQueue(context, due);
  if (file === null) return;
  await discardReceived(context, file).catch((error: unknown) =>
    context.log.warn({ err: error, file }, 'the file of a load that ended could not be removed yet'),
  );
}

export interface CompletedLoad extends LoadEnd {
  readonly tally: Tally;
}

export async function afterCompletion(
  context: LoadContext,
  claim: TaskClaim,
  { tally, ...end }: CompletedLoad,
): Promise<void> {
  context.log.info({ ...taskFields(claim), ...tally }, 'load completed');
  await afterEnd(context, claim.environmentId, end);
}

/** Calls the hooks for a load that failed or was cancelled, and records its end. */
async function recordStop(
  context: Ending,
  db: Database,
  { loadId, environmentId, jobId, source }: StoppedLoad,
): Promise<LoadEnd> {
  const { acts, records } = context;
  const due: DueTask[] = [];
  for (const hooks of hooksFor(context.loads, source))
    due.push(...((await hooks.stopped?.({ db, acts, records }, loadId)) ?? []));
  const end = await recordLoadEnd(context, db, environmentId, jobId);
  return { ...end, due: [...due, ...end.due] };
}

/** Notifies capabilities (see `JobSeam`) of a load that has ended or is held. */
export async function recordLoadEnd(
  { baseUrl, jobs, loads, secrets }: Ending,
  db: Database,
  environmentId: number,
  jobId: string,
): Promise<LoadEnd> {
  const row = await readLoadEnd({ db, loads }, environmentId, jobId);
  const status = (['held', ...endedStatuses] as const).find((ended) => ended === row.status);
  if (status === undefined) throw new Fault(`load ${jobId} is ${row.status} and has not ended`);
  const outcome = outcomeOf(status, row.rows_rejected > 0 || row.isPartial);
  const isSecret = (await secretOf({ db, secrets }, row)) !== undefined;
  const file = isSecret ? await releaseFile(db, row.loadId) : null;
  const due = await jobs.ended(db, {
    type: `load.${outcome}`,
    environmentId,
    jobId,
    emails: [],
    async describe() {
      const load = await requireLoad({ db }, environmentId, jobId);
      return renderLoadDetail(load, row, await readLoadResult(db, environmentId, load), baseUrl);
    },
  });
  return { due, file };
}

const expiredAtATime = 100;

/** Fails loads that have been held for `fileDays` days. Pruning removes their files later. */
export async function expireHeldLoads(context: EndContext, fileDays: number): Promise<void> {
  const message = `Nobody released or discarded it within ${plural(fileDays, 'day')}. Send the file again`;
  let expired: readonly number[];
  do {
    expired = await findExpiredHolds(context.db, fileDays, expiredAtATime);
    for (const loadId of expired) await failLoad(context, loadId, { code: HOLD_EXPIRED, message });
  } while (expired.length === expiredAtATime);
}

/** Starts the next load or deletion in a lane if none is running. */
export async function startLane(context: LaneContext, environmentId: number): Promise<void> {
  const { pool, log } = context;
  const started = await inTransaction(pool, async ({ db }) => {
    await lockLane(db, environmentId);
    const head = await findLaneHead(db, environmentId);
    if (head === null) return null;
    const job = head.kind === 'load' ? await startLoad(db, head.id) : await startDeletion(db, head.id);
    // The job may have been cancelled since `findLaneHead` found it.
    return job && { kind: head.kind, ...job };
  });
  if (started === null) return;
  log.info(jobFields(started), `${started.kind} starts`);
  await notifyQueue(context, started.tasks);
}

/** Maximum number of lanes that are started at the same time. Each start uses a connection. */
const lanesAtATime = 4;

export async function startIdleLanes(context: LoadContext): Promise<void> {
  const atATime = pLimit(lanesAtATime);
  const idle = await idleLanes(context.db);
  await Promise.all(idle.map((environmentId) => atATime(() => startLane(context, environmentId))));
}

/** Starts a lane in the background. If this fails, the reconciler starts the lane later. */
export function startLaneSoon(context: LaneContext, environmentId: number): void {
  startLane(context, environmentId).catch((error: unknown) =>
    context.log.warn({ err: error }, 'a lane could not be started; the reconciler will do it'),
  );
}
