import { createHash } from 'node:crypto';
import { inputError } from '../../base/errors.ts';
import { uuidv7 } from '../../base/uuid.ts';
import type { Act } from '../../domain/act.ts';
import { countLimits, type GuardLimit, type Limits, noLimits } from '../../domain/guards.ts';
import { type DueTask, jobFields, type Origin } from '../../domain/task.ts';
import type { LoadContext } from '../../load/context.ts';
import { startLaneSoon } from '../../load/end.ts';
import type { StopContext } from '../../load/seam.ts';
import { insertOwnLoad, startLoad } from '../../load/store.ts';
import { inTransaction } from '../../postgres/database.ts';
import { claimIdempotencyKey } from '../../tasks/idempotency.ts';
import { lockLane } from '../../tasks/lane-store.ts';
import { insertUndo, readStopped, readUndoable, takePlace, type Undoable } from './store.ts';

export interface UndoRequest extends Limits<GuardLimit> {
  readonly plan: boolean;
  readonly jobIds: readonly string[];
}

interface UndoCaller {
  readonly environmentId: number;
  readonly idempotencyKey: string | null;
  readonly requestId: string | null;
  readonly origin: Origin | null;
}

/** @throws InputError `not_found`, `job_not_undoable`, `job_expired`, `idempotency_conflict` */
export async function acceptUndo(
  context: LoadContext,
  request: UndoRequest,
  caller: UndoCaller,
): Promise<string> {
  const jobId = uuidv7();
  const accepted = await inTransaction(context.pool, async ({ db }) => {
    const { environmentId, idempotencyKey: key } = caller;
    const digest = createHash('sha256')
      .update(JSON.stringify(['undo', request]))
      .digest();
    const earlier = key === null ? null : await claimIdempotencyKey(db, environmentId, key, digest, jobId);
    if (earlier !== null) return earlier.jobId;
    // The lock prevents `retryLoad` from retrying an undone load at the same time.
    await lockLane(db, environmentId);
    await queueUndo({ ...context, db }, request, caller, jobId);
    for (const undone of request.jobIds)
      await context.acts.record(db, describeUndo(environmentId, undone, jobId, request.plan));
    return jobId;
  });
  if (accepted !== jobId) return accepted;
  context.log.info(
    { ...jobFields({ jobId, requestId: caller.requestId }), undoes: request.jobIds },
    'undo accepted',
  );
  startLaneSoon(context, caller.environmentId);
  return jobId;
}

function describeUndo(environmentId: number, thing: string, undoId: string, plan: boolean): Act {
  return { action: 'load.undone', environmentId, thing, details: { undo_job_id: undoId, plan } };
}

async function queueUndo(
  context: Pick<LoadContext, 'db' | 'records'>,
  request: UndoRequest,
  { environmentId, requestId, origin }: UndoCaller,
  jobId: string,
): Promise<void> {
  const { db } = context;
  const { jobIds, plan } = request;
  const loads = await readUndoable(db, environmentId, jobIds);
  const named = loads.filter((load) => jobIds.includes(load.jobId));
  const missing = jobIds.find((id) => !named.some((load) => load.jobId === id));
  if (missing !== undefined) throw inputError('not_found', 'There is no such load', `job_id: ${missing}`);
  for (const load of loads) requireUndoable(load);
  const records = loads.reduce((sum, { totalRows }) => sum + totalRows, 0);
  const limits = countLimits(request, records);
  const writingPass = Object.values(limits).some((limit) => limit !== null) ? 'guard' : 'load';
  const loadId = await insertOwnLoad(context, {
    jobId,
    requestId,
    origin,
    environmentId,
    type: 'undo',
    filename: `undo of ${named[0]?.filename}${named.length > 1 ? ` and ${named.length - 1} more` : ''}`,
    pass: plan ? 'plan' : writingPass,
    limits,
  });
  await insertUndo(
    db,
    loadId,
    loads.map((load) => load.loadId),
  );
}

/**
 * The undo takes the load's place in the lane. If the load was running, the undo starts in the same
 * transaction, so that no other job starts before it.
 */
export async function undoStopped(context: StopContext, loadId: number): Promise<readonly DueTask[]> {
  const { db, acts } = context;
  const { jobId: stopped, filename, wasRunning, origin, originName, ...load } = await readStopped(db, loadId);
  const jobId = uuidv7();
  const undoId = await insertOwnLoad(context, {
    ...load,
    jobId,
    origin: origin === null ? null : { kind: origin, name: originName },
    type: 'undo',
    filename: `undo of ${filename}`,
    pass: 'load',
    limits: noLimits,
  });
  await insertUndo(db, undoId, [loadId]);
  await takePlace(db, undoId, loadId);
  await acts.record(db, describeUndo(load.environmentId, stopped, jobId, false));
  if (!wasRunning) return [];
  return (await startLoad(db, undoId))?.tasks ?? [];
}

function requireUndoable({ jobId, type, status, dryRun, isLogged }: Undoable): void {
  const isOpen = status === 'queued' || status === 'processing' || status === 'held';
  const problem =
    (type === 'undo' && 'An undo cannot be undone. Load the file of the undone job again') ||
    (isOpen && `The job is ${status}. Cancel it, or wait until it has ended`) ||
    (dryRun && 'The job wrote nothing, so there is nothing to undo');
  const details = `job_id: ${jobId}`;
  if (problem) throw inputError('job_not_undoable', problem, details);
  if (!isLogged)
    throw inputError(
      'job_expired',
      'The changes of this job are no longer kept. CHANGES_DAYS says how long they are',
      details,
    );
}
