import { FinalFailure, type InputError, inputError } from '../base/errors.ts';
import { uuidv7 } from '../base/uuid.ts';
import type { Act } from '../domain/act.ts';
import { ALL_RECORDS_REFUSED, type OnDrift } from '../domain/load.ts';
import { toGivenSource } from '../domain/option-table.ts';
import type { ReadAs, SourceOptions } from '../domain/source.ts';
import { type Origin, type TaskClaim, taskFields } from '../domain/task.ts';
import { isPlain } from '../formats/csv-dialect.ts';
import { type Database, inTransaction } from '../postgres/database.ts';
import { claimJobAction } from '../tasks/idempotency.ts';
import { isBeforeDeletion, lockLane } from '../tasks/lane-store.ts';
import { endTask, holdTask, LostClaim } from '../tasks/store.ts';
import { notifyQueue } from '../tasks/task-kind.ts';
import { inTaskTransaction } from '../tasks/worker-store.ts';
import type { LoadContext } from './context.ts';
import { startLane } from './end.ts';
import { isLoadTakenBack, releaseHeld, requeueLoad } from './end-store.ts';
import { UPLOAD_KEPT_MS } from './limits.ts';
import { countDrift } from './plans/rows-store.ts';
import { readLoadId, readReading, requireLoad, type StoredReading } from './read-store.ts';
import { sheetDialect } from './receive/receive.ts';
import { beginPass, queueApply, readBeginning } from './running-store.ts';
import { kindOf, secretOf } from './seam.ts';
import { attachFile } from './store.ts';
import { insertUploadOfLoad, type Upload } from './upload-store.ts';

/**
 * Queues a failed or cancelled load (see `requeueLoad`).
 * @throws InputError `not_found`, `job_not_retryable`, `idempotency_conflict`, `job_expired` (the
 * file no longer exists, or the load would restore data that has been deleted since)
 */
export async function retryLoad(
  context: LoadContext,
  environmentId: number,
  jobId: string,
  idempotencyKey: string | null = null,
): Promise<void> {
  const action = {
    name: 'retry',
    act: 'load.retried',
    logLine: 'load queued again',
    idempotencyKey,
  } as const;
  await queueOnce(context, environmentId, jobId, action, async (db) => {
    if (await requeueLoad(db, context.loads, environmentId, jobId)) return true;
    throw await notRetryable({ ...context, db }, environmentId, jobId);
  });
}

/**
 * Queues a held load, whose guard is not checked again. May be repeated.
 * @throws InputError `not_found`, `job_not_held`, `job_expired`, `idempotency_conflict`
 */
export async function releaseLoad(
  context: LoadContext,
  environmentId: number,
  jobId: string,
  by: Origin,
  idempotencyKey: string | null = null,
): Promise<void> {
  const action = {
    name: 'release',
    act: 'load.released',
    logLine: 'held load released',
    idempotencyKey,
  } as const;
  await queueOnce(context, environmentId, jobId, action, async (db) => {
    if (await releaseHeld(db, environmentId, jobId, by)) return true;
    const { held, status } = await requireLoad({ db }, environmentId, jobId);
    if (held?.decidedAt != null && (status === 'queued' || status === 'processing')) return false;
    throw inputError('job_not_held', `The job is ${status}, not held`, `job_id: ${jobId}`);
  });
}

interface QueueAction {
  readonly name: 'retry' | 'release' | `apply ${OnDrift}`;
  readonly act: Act['action'];
  readonly logLine: string;
  readonly idempotencyKey: string | null;
}

/**
 * Queues a load. Does nothing if the idempotency key has already been used, or if `queue` returns
 * false because the load is already queued. `queue` is called under the lane's lock.
 * @throws InputError `job_expired`
 */
async function queueOnce(
  context: LoadContext,
  environmentId: number,
  jobId: string,
  { name, act, logLine, idempotencyKey }: QueueAction,
  queue: (db: Database) => Promise<boolean>,
): Promise<void> {
  const isQueued = await inTransaction(context.pool, async ({ db }) => {
    if ((await claimJobAction(db, environmentId, name, jobId, idempotencyKey)) !== null) return false;
    await lockLane(db, environmentId);
    // `queue` moves the load to the end of the lane, but its problems come first.
    const isExpired = await isBeforeDeletion(db, environmentId, jobId);
    if (!(await queue(db))) return false;
    if (isExpired) throw deletedSince(jobId);
    await context.acts.record(db, { action: act, environmentId, thing: jobId });
    return true;
  });
  if (!isQueued) return;
  context.log.info({ job_id: jobId }, logLine);
  await startLane(context, environmentId);
}

/** Error for a load that would restore deleted data. */
function deletedSince(jobId: string): InputError {
  const message =
    'Data was deleted since this job was accepted, and the job would bring it back. Send the file again';
  return inputError('job_expired', message, `job_id: ${jobId}`);
}

type SecretContext = Pick<LoadContext, 'db' | 'secrets'>;

async function notRetryable(context: LoadContext, environmentId: number, jobId: string): Promise<Error> {
  const { db, loads } = context;
  const { status, failure } = await requireLoad(context, environmentId, jobId);
  if (failure?.code === ALL_RECORDS_REFUSED) {
    const message =
      'Every record of the file was refused, and would be again. Correct the file and send it again';
    return inputError('job_not_retryable', message, `job_id: ${jobId}`);
  }
  if (await isLoadTakenBack(db, loads, environmentId, jobId)) {
    const message = 'The job is undone. Load its file again as a new job';
    return inputError('job_not_retryable', message, `job_id: ${jobId}`);
  }
  return status === 'failed' || status === 'cancelled'
    ? fileGone(context, jobId)
    : inputError('job_not_retryable', `The job is ${status}`, `job_id: ${jobId}`);
}

/** Error for a load whose file has expired, or whose file a capability required to be removed. */
async function fileGone(context: SecretContext, jobId: string): Promise<InputError> {
  const load = { loadId: await readLoadId(context.db, jobId), uses: context.secrets.map(({ use }) => use) };
  const why = (await secretOf(context, load))?.gone ?? 'The file of this job has expired';
  return inputError('job_expired', `${why}. Send it again`, `job_id: ${jobId}`);
}

/**
 * Creates an upload from a load's stored file, and options that read it as this load did. The file
 * is not copied, so the upload can no longer be used after the file is removed.
 * @throws InputError `not_found`, `job_expired` if the file no longer exists or data has been
 * deleted since, `job_not_retryable` if the file was rewritten or not sent
 */
export async function keepFileOfLoad(
  context: SecretContext,
  environmentId: number,
  jobId: string,
): Promise<{ readonly upload: Upload; readonly options: Readonly<Record<string, unknown>> }> {
  const { db } = context;
  const { ownFile, readAs } = await requireLoad(context, environmentId, jobId);
  if (ownFile)
    throw inputError(
      'job_not_retryable',
      'The file of this job was not sent. Request the job again',
      `job_id: ${jobId}`,
    );
  const reading = await readReading(db, jobId);
  if (reading.preset !== null) {
    const message = 'The file was rewritten when it was received. Send the original file again';
    throw inputError('job_not_retryable', message, `job_id: ${jobId}`);
  }
  if (await isBeforeDeletion(db, environmentId, jobId)) throw deletedSince(jobId);
  const upload = await insertUploadOfLoad(db, environmentId, jobId, uuidv7(), UPLOAD_KEPT_MS);
  if (upload === null) throw await fileGone(context, jobId);
  return { upload, options: optionsFor(reading, readAs) };
}

/** The stored file is unpacked, in UTF-8, and either CSV or NDJSON. */
function optionsFor(
  { entity, map, source, fileFormat }: StoredReading,
  readAs: ReadAs | null,
): Record<string, unknown> {
  return {
    entity,
    ...(Object.keys(map).length > 0 && { map }),
    format: fileFormat,
    ...toGivenSource(storedSource(source, readAs)),
  };
}

function storedSource({ sheet, records, ...source }: SourceOptions, readAs: ReadAs | null): SourceOptions {
  const csv = readAs?.csv ?? null;
  const isRewritten = csv !== null && !isPlain({ dialect: csv, ragged: csv.ragged });
  const { skipRows, skipFooter, headerRows, nulls, ragged, ...settings } = source;
  if (isRewritten) return { ...settings, ...sheetDialect, header: 1, encoding: 'utf-8' };
  return { ...source, ...(readAs?.format === 'xlsx' && sheetDialect), encoding: 'utf-8' };
}

/**
 * Queues a completed plan to be applied. When the load starts, `beginLoad` checks whether profiles
 * have changed since planning.
 * @throws InputError `not_found`, `job_not_appliable`, `plan_already_applied`, `job_expired`,
 * `idempotency_conflict`
 */
export async function applyPlan(
  context: LoadContext,
  environmentId: number,
  jobId: string,
  onDrift: OnDrift,
  idempotencyKey: string | null = null,
): Promise<void> {
  const action = {
    name: `apply ${onDrift}`,
    act: 'load.applied',
    logLine: 'plan queued to be applied',
    idempotencyKey,
  } as const;
  await queueOnce(context, environmentId, jobId, action, async (db) => {
    if (await queueApply(db, environmentId, jobId, onDrift)) return true;
    throw await notAppliable(db, environmentId, jobId);
  });
}

async function notAppliable(db: Database, environmentId: number, jobId: string): Promise<Error> {
  const { pass, plan, status, hasFile, ...load } = await requireLoad({ db }, environmentId, jobId);
  const details = `job_id: ${jobId}`;
  const isPlan = pass === 'plan' || pass === 'apply';
  if (!isPlan && (plan?.appliedAt ?? null) !== null)
    return inputError('plan_already_applied', 'The plan was applied already', details);
  if (pass === 'apply' && (status === 'queued' || status === 'processing'))
    return inputError('plan_already_applied', 'The plan is being applied', details);
  if (!isPlan) return inputError('job_not_appliable', 'The job is not a plan', details);
  if (!hasFile) {
    return inputError('job_expired', 'The file of this job has expired. Send it again', details);
  }
  const why = load.failure === null ? `The plan is ${status}` : `The plan failed: ${load.failure.message}`;
  return inputError('job_not_appliable', why, details);
}

/**
 * Starts a load from the beginning. A load that writes its own file writes it first. If profiles
 * have changed since planning, applying the plan fails, unless `onDrift` is `proceed`.
 */
export async function beginLoad(context: LoadContext, claim: TaskClaim, signal: AbortSignal): Promise<void> {
  const { db: pool, loads } = context;
  const load = await readBeginning(pool, claim.subjectId);
  if (load === null) throw new LostClaim();
  const file = await kindOf(loads, load.type)?.writeFile(context, claim, signal);
  const tasks = await inTaskTransaction(context.pool, claim, async ({ db }) => {
    const beginning = await readBeginning(db, claim.subjectId);
    if (beginning === null) throw new LostClaim();
    const { pass, onDrift } = beginning;
    if (pass === 'apply' && onDrift !== 'proceed') {
      const drifted = await countDrift(db, claim.subjectId);
      if (drifted > 0) throw new FinalFailure(PLAN_DRIFTED, describeDrift(drifted));
    }
    await holdTask(db, claim);
    if (file !== undefined) await attachFile(db, claim.subjectId, file);
    const chunkTasks = await beginPass(db, context, claim.subjectId, pass === 'apply' ? 'load' : pass);
    await endTask(db, claim);
    return chunkTasks;
  });
  context.log.info(taskFields(claim), 'load starts again');
  await notifyQueue(context, tasks);
}

/** A `failure.code`. */
const PLAN_DRIFTED = 'plan_drifted';

function describeDrift(drifted: number): string {
  return `${drifted} ${drifted === 1 ? 'profile has' : 'profiles have'} changed since the plan; apply it with on_drift=proceed, or retry the job to plan it again`;
}
