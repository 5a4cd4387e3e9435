import pLimit from 'p-limit';
import { Fault, inputError } from '../base/errors.ts';
import { plural } from '../base/wording.ts';
import { outcomeOf } from '../domain/job.ts';
import { endedStatuses, HOLD_EXPIRED, type Tally } from '../domain/load.ts';
import {
  type DueTask,
  type JobIdentity,
  jobFields,
  type Origin,
  type TaskClaim,
  type TaskFailure,
  taskFields,
} from '../domain/task.ts';
import type { FileRef } from '../files/file-store.ts';
import { type Database, inTransaction } from '../postgres/database.ts';
import { claimJobAction } from '../tasks/idempotency.ts';
import { findLaneHead, idleLanes, startDeletion } from '../tasks/lane-store.ts';
import { notifyQueue } from '../tasks/task-kind.ts';
import type { LoadContext } from './context.ts';
import { cancelLoad as markCancelled, failLoad as markFailed } from './end-store.ts';
import { findExpiredHolds } from './held-store.ts';
import { countRejects, readLoadEnd, requireLoad } from './read-store.ts';
import { discardReceived } from './received.ts';
import { renderLoadDetail } from './render-load.ts';
import { secretOf } from './seam.ts';
import { releaseFile, startLoad } from './store.ts';

type LaneContext = Pick<LoadContext, 'pool' | 'queue' | 'log'>;
type Ending = Pick<LoadContext, 'baseUrl' | 'jobs' | 'loads' | 'secrets'>;
export type EndContext = LaneContext & Ending & Pick<LoadContext, 'db' | 'files'>;

/**
 * Ends a running load as failed, keeping what was applied, and starts the next of its lane.
 * Does nothing if the load has ended already.
 */
export async function failLoad(context: EndContext, loadId: number, failure: TaskFailure): Promise<void> {
  const ended = await inTransaction(context.pool, async ({ db }) => {
    const load = await markFailed(db, loadId, failure);
    return load && { ...load, ...(await recordLoadEnd(context, db, load.environmentId, load.jobId)) };
  });
  if (ended === null) return;
  context.log.warn({ ...jobFields(ended), code: failure.code }, `load failed: ${ended.failureMessage}`);
  await afterEnd(context, ended.environmentId, ended);
}

/**
 * Stops a load that has not ended, or discards a held one; what its finished chunks applied stays. Chunks under way find their task gone at the fence and
 * change nothing. Returns when it was cancelled: before now, if the same idempotency key asked before.
 * Throws `InputError`: `not_found`, `job_not_cancellable`, `idempotency_conflict`.
 */
export async function cancelLoad(
  context: LoadContext,
  environmentId: number,
  jobId: string,
  idempotencyKey: string | null = null,
  by: Origin | null = null,
): Promise<Date> {
  const { cancelledAt, end } = await inTransaction(context.pool, async ({ db }) => {
    const before = await claimJobAction(db, environmentId, 'cancel', jobId, idempotencyKey);
    if (before !== null) return { cancelledAt: before, end: null };
    const cancelled = await markCancelled(db, environmentId, jobId, by);
    if (cancelled === null) return { cancelledAt: await discardedAt(db, environmentId, jobId), end: null };
    return { cancelledAt: cancelled.at, end: await recordLoadEnd(context, db, environmentId, jobId) };
  });
  if (end === null) return cancelledAt;
  context.log.info({ job_id: jobId }, 'load cancelled');
  await afterEnd(context, environmentId, end);
  return cancelledAt;
}

/** Returns when a held load was discarded; to do so again is no mistake. @throws InputError `not_found`, `job_not_cancellable` */
async function discardedAt(db: Database, environmentId: number, jobId: string): Promise<Date> {
  const { status, endedAt, held } = await requireLoad({ db }, environmentId, jobId);
  if (status === 'cancelled' && endedAt !== null && held?.decidedAt != null) return endedAt;
  throw inputError('job_not_cancellable', `the job is ${status} already`, `job_id: ${jobId}`);
}

/** The work that is left once the transaction that ended a load, or holds it, has committed. */
export interface LoadEnd {
  /** Tasks that the end made due. */
  readonly due: readonly DueTask[];
  /** The file to remove, because no text of the load is kept; `null` for a file that is kept. */
  readonly file: FileRef | null;
}

/** Does what is left after the end of a load. A file that cannot be removed now is removed when others are pruned. */
export async function afterEnd(
  context: EndContext,
  environmentId: number,
  { due, file }: LoadEnd,
): Promise<void> {
  await startLane(context, environmentId);
  await notifyQueue(context, due);
  if (file === null) return;
  await discardReceived(context, file).catch((error: unknown) =>
    context.log.warn({ err: error, file }, 'the file of a load that ended could not be removed yet'),
  );
}

/** A load that has just been completed, and its counts. */
export interface CompletedLoad extends LoadEnd {
  readonly tally: Tally;
}

/** Starts the next load of the lane after the transaction that completed one. */
export async function afterCompletion(
  context: LoadContext,
  claim: TaskClaim,
  { tally, ...end }: CompletedLoad,
): Promise<void> {
  context.log.info({ ...taskFields(claim), ...tally }, 'load completed');
  await afterEnd(context, claim.environmentId, end);
}

/** Tells the capabilities of a load's end, or of its hold; call it in the transaction that ends or holds it. See `JobSeam`. */
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
      const byCode = row.rows_rejected === 0 ? {} : await countRejects({ db }, environmentId, jobId);
      return renderLoadDetail(load, row, byCode, baseUrl);
    },
  });
  return { due, file };
}

const expiredAtATime = 100;

/** Fails held loads that nobody decided on while their files were to be kept; the files go with the next pruning. */
export async function expireHeldLoads(context: EndContext, fileDays: number): Promise<void> {
  const message = `nobody released or discarded it within ${plural(fileDays, 'day')}: send the file again`;
  let expired: readonly number[];
  do {
    expired = await findExpiredHolds(context.db, fileDays, expiredAtATime);
    for (const loadId of expired) await failLoad(context, loadId, { code: HOLD_EXPIRED, message });
  } while (expired.length === expiredAtATime);
}

/** Starts the next load or deletion of an environment's lane, if none runs, and notifies the workers. */
export async function startLane(context: LaneContext, environmentId: number): Promise<void> {
  const started = await startNext(context, environmentId);
  if (started !== null) await notifyQueue(context, started.tasks);
}

interface StartedJob extends JobIdentity {
  readonly tasks: readonly DueTask[];
}

async function startNext({ pool, log }: LaneContext, environmentId: number): Promise<StartedJob | null> {
  const started = await inTransaction(pool, async ({ db }) => {
    const head = await findLaneHead(db, environmentId);
    if (head === null) return null;
    const job: StartedJob | null =
      head.kind === 'load' ? await startLoad(db, head.id) : await startDeletion(db, head.id);
    // It may have been cancelled since.
    return job && { kind: head.kind, ...job };
  });
  if (started !== null) log.info(jobFields(started), `${started.kind} starts`);
  return started;
}

/** A standing lane must not wait for a slow one, nor all of them take every connection. */
const lanesAtATime = 4;

/** Starts every lane in which something waits and nothing runs. */
export async function startIdleLanes(context: LoadContext): Promise<void> {
  const atATime = pLimit(lanesAtATime);
  const idle = await idleLanes(context.db);
  await Promise.all(idle.map((environmentId) => atATime(() => startLane(context, environmentId))));
}

/** After something was accepted. It is safe in the ledger; whoever is slow or away here, the reconciler makes up for. */
export function startLaneSoon(context: LaneContext, environmentId: number): void {
  inBackground(context, startLane(context, environmentId));
}

/**
 * After a small load was accepted: `startLaneSoon`, and if it is this load that starts, and its turn, this process does its only chunk
 * itself. That saves the way through the queue; what waited in the lane is left to the workers, who take environments in turn.
 */
export function startSmallLoadSoon(context: LoadContext, environmentId: number, jobId: string): void {
  const start = async (): Promise<void> => {
    const started = await startNext(context, environmentId);
    const [task] = started?.tasks ?? [];
    if (started === null || task === undefined) return;
    const isOwn = started.jobId === jobId && (await context.ownTasks?.tryRun(task, environmentId));
    if (isOwn !== true) await notifyQueue(context, started.tasks);
  };
  inBackground(context, start());
}

function inBackground({ log }: LaneContext, starting: Promise<void>): void {
  starting.catch((error: unknown) =>
    log.warn({ err: error }, 'a lane could not be started; the reconciler will do it'),
  );
}
