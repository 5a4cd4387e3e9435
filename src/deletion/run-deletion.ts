import { ConflictError } from '../base/errors.ts';
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
import { nameTaskSession } from '../tasks/worker-store.ts';
import { deleteMatchingRejects, removeExports, removeKeptFiles, removeUploads } from './erase-files.ts';
import type { Attempt, DeletionContext, DeletionStep } from './seam.ts';
import {
  addStep,
  beginDeletion,
  completeDeletion,
  type DeletionWork,
  failDeletion as markFailed,
  readIds,
} from './store.ts';

/** Ids that share the transactions of a deletion, and rows that one of those removes or changes. */
const DELETION_BATCH_IDS = 200;
const DELETION_BATCH_ROWS = 5_000;

const notOurs = 'another worker has the deletion, or it has ended';

/** Does one deletion, then starts the next of the lane. An aborted one continues elsewhere. */
export async function runDeletion(
  context: DeletionContext,
  claim: TaskClaim,
  signal: AbortSignal,
): Promise<void> {
  const work = await inTransaction(context.pool, ({ db }) => beginDeletion(db, claim));
  if (work === null) throw new ConflictError(notOurs);
  for (const { option, begin } of context.deletions)
    if (option !== undefined && work.options[option.name] === true) await begin?.(context, claim, signal);
  const attempt = startAttempt(context, claim, work, signal);
  // First, since an id of which there is nothing but archived events is one that was found.
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
  { entity }: DeletionWork,
  signal: AbortSignal,
): Attempt {
  return {
    context,
    deletion: { deletionId: claim.subjectId, environmentId: claim.environmentId, entity },
    async step(work) {
      signal.throwIfAborted();
      return inTransaction(context.pool, async ({ db }) => {
        await nameTaskSession(db, claim);
        const done = await work(db);
        if (await addStep(db, claim, done)) return done;
        throw new ConflictError(notOurs);
      });
    },
    goOn: () => signal.throwIfAborted(),
  };
}

/** This commit waits for the disk. */
async function complete(context: DeletionContext, claim: TaskClaim): Promise<void> {
  await inTransaction(context.pool, async ({ db }) => {
    if (!(await completeDeletion(db, claim))) throw new ConflictError(notOurs);
  });
  context.log.info(taskFields(claim), 'deletion completed');
}

/** Ends a deletion as failed, and starts the next of its lane. Does nothing if it has ended already. */
export async function failDeletion(
  context: DeletionContext,
  deletionId: number,
  failure: TaskFailure,
): Promise<void> {
  const ended = await inTransaction(context.pool, async ({ db }) => {
    const failed = await markFailed(db, deletionId, failure);
    if (failed === null) return null;
    for (const seam of context.deletions) await seam.failed?.(db, failed.environmentId);
    return failed;
  });
  if (ended === null) return;
  context.log.error({ ...jobFields(ended), code: failure.code }, `deletion failed: ${failure.message}`);
  await startLane(context, ended.environmentId);
}

/**
 * Removes the profiles and their data in batches of ids, some thousand rows in a transaction. Each
 * transaction counts what it removed, so another worker can continue there.
 */
async function deleteProfiles(attempt: Attempt): Promise<void> {
  const { context, deletion } = attempt;
  const { deletionId, environmentId } = deletion;
  for (;;) {
    const ids = await readIds(context.db, deletionId, DELETION_BATCH_IDS);
    if (ids.length === 0) return;
    const batch = { deletionId, environmentId, ids };
    if (deletion.entity === 'users') await deleteUsers(attempt, batch);
    else await deleteCompanies(attempt, batch);
  }
}

/** Takes a step after another until one leaves nothing. */
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

/** Removes the images of the profiles in slices, the last of them together with the profiles. */
async function removeBatch(
  db: Database,
  entity: Entity,
  batch: DeletionBatch,
): Promise<DeletionStep & { readonly left: boolean }> {
  if ((await eraseImages(db, entity, batch, DELETION_BATCH_ROWS)) >= DELETION_BATCH_ROWS)
    return { left: true };
  return { left: false, ...(await removeProfiles(db, entity, batch)) };
}

/** Its users first: whoever names a company that is gone would bring it back. */
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
 * A record written while its company was deleted may still name it. Once those writers have ended,
 * references to companies without a profile are cleared.
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
