import type { RawBuilder } from 'kysely';
import { Fault, FinalFailure } from '../base/errors.ts';
import { plural } from '../base/wording.ts';
import { findSurprises, type Limits, type Surprise } from '../domain/guards.ts';
import { balances, GUARD_EXCEEDED, keepsPlan, type LoadPass, type PlanSummary } from '../domain/load.ts';
import { type DueTask, type TaskClaim, type TaskFailure, taskFields } from '../domain/task.ts';
import type { Database } from '../postgres/database.ts';
import { endTask, holdTask, LostClaim } from '../tasks/store.ts';
import { notifyQueue } from '../tasks/task-kind.ts';
import { inTaskTransaction } from '../tasks/worker-store.ts';
import type { LoadContext } from './context.ts';
import { afterCompletion, afterEnd, type CompletedLoad, type LoadEnd, recordLoadEnd } from './end.ts';
import { completeLoad, holdLoad, readGuarded } from './end-store.ts';
import { recordEventRepeats } from './merge/event-repeats.ts';
import { type ChunksDone, countRestored, findRepeats, resolveRepeats } from './merge/repeats.ts';
import { summarisePlan, takeBackRepeated } from './plans/store.ts';
import { requireLoad } from './read-store.ts';
import { recordMends } from './rejects/mends.ts';
import { allRefused, tooManyRejects } from './rejects/rejects.ts';
import { replayEvents, replayLoad } from './replay.ts';
import { beginPass, type FinishState, readFinishState, readLimitedPlan } from './running-store.ts';
import { type EndSeam, endsFor } from './seam.ts';

/**
 * Ends a load whose chunks are all done. This function may run late, be interrupted or be repeated.
 */
export async function finishLoad(context: LoadContext, claim: TaskClaim): Promise<void> {
  const chunks = await findRepeats(context.db, claim.subjectId);
  if (chunks === null) throw new LostClaim();
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
    await resolveRepeats(db, claim);
    if (keepsPlan(pass)) await takeBackRepeated(db, claim.subjectId);
  });
}

/**
 * The COMMIT of this function waits until it is on the disk. The asynchronous commits of the chunks
 * are then on the disk too.
 */
async function complete(
  context: LoadContext,
  claim: TaskClaim,
  chunks: ChunksDone,
): Promise<CompletedLoad | Continuation | Held> {
  return inTaskTransaction(context.pool, claim, async ({ db }) => {
    if (chunks.hasRewritten && (chunks.pass === 'load' || chunks.pass === 'dry_run'))
      await countRestored(db, claim, chunks.pass);
    const { jobId, tally, pass } = await runFinalChecks(context, db, claim);
    if (pass === 'validate' || pass === 'guard')
      return (await holdIfUnlike(context, db, claim, jobId)) ?? continueLoad(context, db, claim);
    for (const seam of endsFor(context.loads, chunks.source)) await seam.completed(db, claim.subjectId);
    await completeLoad(db, claim.subjectId);
    const end = await recordLoadEnd(context, db, claim.environmentId, jobId);
    await endTask(db, claim);
    return { tally, ...end };
  });
}

async function decide(context: LoadContext, claim: TaskClaim, seam: EndSeam): Promise<void> {
  await inTaskTransaction(context.pool, claim, async ({ db }) => {
    await runFinalChecks(context, db, claim);
    await seam.decide(db, claim.subjectId);
  });
}

/** The tasks that load the chunks after a pass that only checked the file. */
interface Continuation {
  readonly tasks: readonly DueTask[];
}

async function continueLoad(context: LoadContext, db: Database, claim: TaskClaim): Promise<Continuation> {
  // If the load has no chunks, `beginPass` inserts another finish task, so this one must be gone.
  await endTask(db, claim);
  return { tasks: await beginPass(db, context, claim.subjectId, 'load') };
}

/**
 * Runs the last checks that can fail a load. Renews the claim first, so that the claim is locked.
 * @throws FinalFailure
 */
async function runFinalChecks(context: LoadContext, db: Database, claim: TaskClaim): Promise<FinishState> {
  await holdTask(db, claim);
  const state = await readFinishState(db, claim.subjectId);
  const { tally, totalRows, pass, maxErrors } = state;
  if (pass !== 'validate') requireBalance(state);
  if (maxErrors !== null && tally.rejected > maxErrors)
    throw fails(tooManyRejects(tally.rejected, maxErrors));
  const planned = keepsPlan(pass) ? await readLimitedPlan(db, claim.subjectId) : null;
  const failure = planned && findGuardHit(planned, planned.plan);
  if (failure !== null) throw fails(failure);
  if (tally.rejected > 0 && tally.rejected === totalRows && !state.ownFile)
    throw fails(await allRefused({ ...context, db }, claim));
  return state;
}

function requireBalance({ tally, totalRows, kindsAddUp, openChunks }: FinishState): void {
  if (!balances(tally) || tally.read !== totalRows) {
    throw new Fault(`the ledger does not balance: ${JSON.stringify(tally)}, ${totalRows} records received`);
  }
  if (!kindsAddUp) throw new Fault('the counts by kind do not add up to those of the load');
  if (openChunks > 0) throw new Fault(`${openChunks} chunks are not done, though all were counted as done`);
}

function fails({ code, message }: TaskFailure): FinalFailure {
  return new FinalFailure(code, message);
}

function findGuardHit(
  { maxChanged, maxRemovedValues }: Omit<Limits<number>, 'maxErrors'>,
  { profiles, values }: PlanSummary,
): TaskFailure | null {
  const { users, companies } = profiles;
  const changed = users.changed + users.removed + companies.changed + companies.removed;
  const hits = [
    [changed, maxChanged, `${plural(changed, 'profile')} would be changed or removed and max_changed`],
    [values.go, maxRemovedValues, `${plural(values.go, 'value')} would be removed and max_removed_values`],
  ] as const;
  const [, limit, what] = hits.find(([count, allowed]) => allowed !== null && count > allowed) ?? [];
  return what === undefined ? null : { code: GUARD_EXCEEDED, message: `${what} allows ${limit}` };
}

/** A held load waits for a person's decision, but does not block its lane. */
interface Held extends LoadEnd {
  readonly held: readonly Surprise[];
}

async function holdIfUnlike(
  context: LoadContext,
  db: Database,
  claim: TaskClaim,
  jobId: string,
): Promise<Held | null> {
  const guarded = await readGuarded(db, claim.subjectId);
  if (guarded === null) return null;
  const surprises = findSurprises(guarded.guard, guarded.file, guarded.past);
  if (surprises.length === 0) return null;
  await holdLoad(db, claim.subjectId, surprises);
  const end = await recordLoadEnd(context, db, claim.environmentId, jobId);
  await endTask(db, claim);
  return { held: surprises, ...end };
}

async function afterHold(context: LoadContext, claim: TaskClaim, { held, ...end }: Held): Promise<void> {
  context.log.warn({ ...taskFields(claim), held }, 'load held: its file is unlike what its guard expects');
  await afterEnd(context, claim.environmentId, end);
}

/** Writes the summary of a plan. Does nothing if the plan already has one. */
async function concludePlan(context: LoadContext, claim: TaskClaim, chunks: ChunksDone): Promise<void> {
  const { environmentId, subjectId, jobId } = claim;
  await inTaskTransaction(context.pool, claim, async ({ db }) => {
    if ((await requireLoad({ ...context, db }, environmentId, jobId ?? '')).plan !== null) return;
    if (chunks.hasRewritten) await countRestored(db, claim, chunks.pass);
    const load = await requireLoad({ ...context, db }, environmentId, jobId ?? '');
    const planned: RawBuilder<unknown>[] = [];
    for (const seam of endsFor(context.loads, chunks.source)) planned.push(await seam.planned(db, subjectId));
    await summarisePlan(db, subjectId, { counts: load.tally, countsByKind: load.tallyByKind }, planned);
    await holdTask(db, claim);
  });
}
