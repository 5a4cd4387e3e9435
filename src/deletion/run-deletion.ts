import type { Entity } from '../domain/entity.ts';
import { jobFields, type TaskClaim, type TaskFailure, taskFields } from '../domain/task.ts';
import {
  type DeletionBatch,
  deleteEvents,
  eraseCompanies,
  eraseImages,
  eraseUndropped,
  releaseEvents,
  releaseUsers,
  removeProfiles,
  withoutProfile,
} from '../export/deleted-profile-store.ts';
import { startLane } from '../load/end.ts';
import { type Database, earlierWritersEnded, inTransaction } from '../postgres/database.ts';
import { LostClaim } from '../tasks/store.ts';
import { inTaskTransaction } from '../tasks/worker-store.ts';
import { deleteMatchingRejects, removeExports, removeKeptFiles, removeUploads } from './erase-files.ts';
import type { Attempt, DeletionContext, DeletionStep } from './seam.ts';
import { addStep, beginDeletion, completeDeletion, failDeletion as markFailed, readIds } from './store.ts';

const DELETION_BATCH_IDS = 200;
/** Maximum number of rows that a single transaction removes or changes. */
const DELETION_BATCH_ROWS = 5_000;

/** If `signal` is aborted, another worker continues the deletion. */
export async function runDeletion(
  context: DeletionContext,
  claim: TaskClaim,
  signal: AbortSignal,
): Promise<void> {
  const work = await inTransaction(context.pool, ({ db }) => beginDeletion(db, claim));
  if (work === null) throw new LostClaim();
  for (const { option, begin } of context.deletions)
    if (option !== undefined && work.options[option.name] === true) await begin?.(context, claim, signal);
  const attempt = startAttempt(context, claim, work.entity, signal);
  // Files are erased first, so that an id counts as found even if only archived events contain it.
  const again: (() => Promise<void>)[] = [];
  for (const { eraseFiles } of context.deletions) if (eraseFiles) again.push(await eraseFiles(attempt));
  await deleteProfiles(attempt);
  if (work.entity === 'companies') await clearReferences(attempt);
  for (const erase of again) await erase();
  const ids = await readIds(context.db, claim.subjectId);
  await untilDone(attempt, async (db) => {
    const batch = { environmentId: claim.environmentId, ids };
    const rows = await eraseUndropped(db, work.entity, batch, DELETION_BATCH_ROWS);
    return { events: 0, left: rows >= DELETION_BATCH_ROWS };
  });
  await deleteMatchingRejects(attempt);
  await removeKeptFiles(attempt);
  await removeUploads(attempt);
  if (work.purgeExports) await removeExports(attempt);
  await complete(context, claim);
  await startLane(context, claim.environmentId);
}

function startAttempt(
  context: DeletionContext,
  claim: TaskClaim,
  entity: Entity,
  signal: AbortSignal,
): Attempt {
  return {
    context,
    deletion: { deletionId: claim.subjectId, environmentId: claim.environmentId, entity },
    async step(work) {
      signal.throwIfAborted();
      return inTaskTransaction(context.pool, claim, async ({ db }) => {
        const done = await work(db);
        if (await addStep(db, claim, done)) return done;
        throw new LostClaim();
      });
    },
    throwIfAborted: () => signal.throwIfAborted(),
  };
}

/** Marks the deletion as completed. The commit waits until the data is on disk. */
async function complete(context: DeletionContext, claim: TaskClaim): Promise<void> {
  await inTransaction(context.pool, async ({ db }) => {
    if (!(await completeDeletion(db, claim))) throw new LostClaim();
  });
  context.log.info(taskFields(claim), 'deletion completed');
}

/** Marks the deletion as failed, unless it has already ended. */
export async function failDeletion(
  context: DeletionContext,
  deletionId: number,
  failure: TaskFailure,
): Promise<void> {
  const deletion = await inTransaction(context.pool, async ({ db }) => {
    const failed = await markFailed(db, deletionId, failure);
    if (failed === null) return null;
    for (const seam of context.deletions) await seam.failed?.(db, failed.environmentId);
    return failed;
  });
  if (deletion === null) return;
  context.log.error({ ...jobFields(deletion), code: failure.code }, `deletion failed: ${failure.message}`);
  await startLane(context, deletion.environmentId);
}

/**
 * Deletes the profiles of all ids that have no outcome, so a new attempt skips the ids of earlier
 * attempts.
 */
async function deleteProfiles(attempt: Attempt): Promise<void> {
  const { context, deletion } = attempt;
  const { deletionId, environmentId } = deletion;
  while (true) {
    const ids = await readIds(context.db, deletionId, DELETION_BATCH_IDS);
    if (ids.length === 0) return;
    const batch = { deletionId, environmentId, ids };
    if (deletion.entity === 'users') await deleteUsers(attempt, batch);
    else await deleteCompanies(attempt, batch);
  }
}

async function untilDone(
  { step }: Attempt,
  work: (db: Database) => Promise<DeletionStep & { readonly left: boolean }>,
): Promise<void> {
  while ((await step(work)).left);
}

function deleteUsers(attempt: Attempt, batch: DeletionBatch): Promise<void> {
  return untilDone(attempt, async (db) => {
    const events = await deleteEvents(db, batch, DELETION_BATCH_ROWS);
    if (events >= DELETION_BATCH_ROWS) return { events, left: true };
    return { events, ...(await removeBatch(db, 'users', batch)) };
  });
}

/**
 * Each call except the last removes DELETION_BATCH_ROWS previous versions of the profiles in
 * `batch` from the change log. The last call removes the remaining versions and the profiles in one
 * transaction.
 */
async function removeBatch(
  db: Database,
  entity: Entity,
  batch: DeletionBatch,
): Promise<DeletionStep & { readonly left: boolean }> {
  if ((await eraseImages(db, entity, batch, DELETION_BATCH_ROWS)) >= DELETION_BATCH_ROWS)
    return { left: true };
  return { left: false, ...(await removeProfiles(db, entity, batch)) };
}

/**
 * Users are removed from a company before its profile is deleted. In the opposite order, a record
 * for one of the users could create the company again.
 */
function deleteCompanies(attempt: Attempt, batch: DeletionBatch): Promise<void> {
  return untilDone(attempt, async (db) => {
    const users = await releaseUsers(db, batch, DELETION_BATCH_ROWS);
    if (users >= DELETION_BATCH_ROWS) return { events: 0, left: true };
    const events = await releaseEvents(db, batch, DELETION_BATCH_ROWS);
    if (events >= DELETION_BATCH_ROWS) return { events, left: true };
    return { events, ...(await removeBatch(db, 'companies', batch)) };
  });
}

const writersTimeoutMs = 10_000;

/**
 * Clears references to companies that have no profile. Records written during the deletion may have
 * added such references, so this function first waits for their transactions.
 */
async function clearReferences(attempt: Attempt): Promise<void> {
  const { context, deletion } = attempt;
  const { deletionId, environmentId } = deletion;
  await earlierWritersEnded(context.db, writersTimeoutMs);
  const all = await readIds(context.db, deletionId);
  await attempt.step((db) => eraseCompanies(db, environmentId, all).then(() => ({})));
  const ids = await withoutProfile(context.db, environmentId, all);
  if (ids.length === 0) return;
  const batch = { deletionId, environmentId, ids };
  await untilDone(attempt, async (db) => {
    const users = await releaseUsers(db, batch, DELETION_BATCH_ROWS);
    const events = await releaseEvents(db, batch, DELETION_BATCH_ROWS);
    return { events, left: users >= DELETION_BATCH_ROWS || events >= DELETION_BATCH_ROWS };
  });
}
