import { ConflictError } from '../base/errors.ts';
import { keepsPlan, type LoadPass } from '../domain/load.ts';
import type { DueTask, TaskClaim } from '../domain/task.ts';
import type { Database } from '../postgres/database.ts';
import { endTask, renewTask } from '../tasks/store.ts';
import { notifyQueue } from '../tasks/task-kind.ts';
import { inTaskTransaction } from '../tasks/worker-store.ts';
import type { LoadContext } from './context.ts';
import { afterCompletion, type CompletedLoad, recordLoadEnd } from './end.ts';
import { completeLoad } from './end-store.ts';
import { runFinalChecks } from './final-checks.ts';
import { afterHold, type Held, holdIfUnlike } from './hold.ts';
import { recordEventRepeats } from './merge/event-repeats.ts';
import { type ChunksDone, countRestored, findRepeats, resolveRepeats } from './merge/repeats.ts';
import { concludePlan } from './plans/conclude.ts';
import { takeBackRepeated } from './plans/store.ts';
import { recordMends } from './rejects/mends.ts';
import { replayLoad } from './replay.ts';
import { replayEvents } from './replay-events.ts';
import { beginPass } from './running-store.ts';
import { type EndSeam, endsFor } from './seam.ts';

const lostClaim = 'another worker finishes the load, or it has ended';

/**
 * Ends a load whose chunks are all done. Corrects the counts, merges repeated keys and events
 * again, and stores which rejects were corrected. Then checks that the counts add up, completes the
 * load, and starts the next job in the lane. May run late, be interrupted or be repeated.
 */
export async function finishLoad(context: LoadContext, claim: TaskClaim): Promise<void> {
  const chunks = await findRepeats(context.db, claim.subjectId);
  if (chunks === null) throw new ConflictError(lostClaim);
  if (chunks.hasRepeats) await countRepeats(context, claim, chunks.pass);
  await replayLoad(context, claim);
  await replayEvents(context, claim);
  const seams = chunks.pass === 'validate' ? [] : endsFor(context.loads, chunks.source);
  for (const seam of seams) {
    await decide(context, claim, seam);
    if (chunks.pass === 'load') await seam.settle(context, claim);
  }
  if (chunks.pass === 'load') await recordMends(context, claim);
  if (keepsPlan(chunks.pass)) await concludePlan(context, claim, chunks);
  const completed = await complete(context, claim, chunks);
  if ('tally' in completed) await afterCompletion(context, claim, completed);
  else if ('held' in completed) await afterHold(context, claim, completed);
  else await notifyQueue(context, completed.tasks);
}

async function countRepeats(context: LoadContext, claim: TaskClaim, pass: LoadPass): Promise<void> {
  await inTaskTransaction(context.pool, claim, async ({ db }) => {
    await recordEventRepeats(db, claim.subjectId);
    await resolveRepeats(db, claim.subjectId);
    if (keepsPlan(pass)) await takeBackRepeated(db, claim.subjectId);
    if (!(await renewTask(db, claim))) throw new ConflictError(lostClaim);
  });
}

/**
 * Completes the load, holds it, or starts its next pass. This COMMIT waits until it is on disk. The
 * earlier, asynchronous commits of the chunks are then on disk too.
 */
async function complete(
  context: LoadContext,
  claim: TaskClaim,
  chunks: ChunksDone,
): Promise<CompletedLoad | Continuation | Held> {
  return inTaskTransaction(context.pool, claim, async ({ db }) => {
    if (chunks.hasRewritten && (chunks.pass === 'load' || chunks.pass === 'dry_run'))
      await countRestored(db, claim.subjectId, chunks.pass);
    const { jobId, tally, pass } = await runFinalChecks(context, db, claim);
    if (pass === 'validate' || pass === 'guard')
      return (await holdIfUnlike(context, db, claim, jobId)) ?? continueLoad(context, db, claim);
    for (const seam of endsFor(context.loads, chunks.source)) await seam.completed(db, claim.subjectId);
    await completeLoad(db, claim.subjectId);
    const end = await recordLoadEnd(context, db, claim.environmentId, jobId);
    if (!(await endTask(db, claim))) throw new ConflictError(lostClaim);
    return { tally, ...end };
  });
}

/** Runs all checks that can fail the load, then calls the `decide` hook of a capability. */
async function decide(context: LoadContext, claim: TaskClaim, seam: EndSeam): Promise<void> {
  await inTaskTransaction(context.pool, claim, async ({ db }) => {
    await runFinalChecks(context, db, claim);
    await seam.decide(db, claim.subjectId);
  });
}

/** Result of a pass that only checked the file: the tasks that now load the chunks. */
interface Continuation {
  readonly tasks: readonly DueTask[];
}

async function continueLoad(context: LoadContext, db: Database, claim: TaskClaim): Promise<Continuation> {
  const tasks = await beginPass(db, context, claim.subjectId, 'load');
  if (!(await endTask(db, claim))) throw new ConflictError(lostClaim);
  return { tasks };
}
