import type { RawBuilder } from 'kysely';
import { ConflictError, Fault, FinalFailure } from '../base/errors.ts';
import { plural } from '../base/wording.ts';
import { entities } from '../domain/entity.ts';
import { findSurprises, type Limits, type Surprise } from '../domain/guards.ts';
import { balances, GUARD_EXCEEDED, keepsPlan, type LoadPass, type PlanSummary } from '../domain/load.ts';
import { type DueTask, type TaskClaim, type TaskFailure, taskFields } from '../domain/task.ts';
import { type Database, inTransaction } from '../postgres/database.ts';
import { endTask, renewTask } from '../tasks/store.ts';
import { notifyQueue } from '../tasks/task-kind.ts';
import { nameTaskSession } from '../tasks/worker-store.ts';
import { noteWritten, readChunkRange } from './chunk-store.ts';
import type { LoadContext } from './context.ts';
import { afterCompletion, afterEnd, type CompletedLoad, type LoadEnd, recordLoadEnd } from './end-load.ts';
import { completeLoad } from './end-store.ts';
import { holdLoad, readGuarded } from './held-store.ts';
import type { Rows } from './map/rows.ts';
import { noteEventRepeats } from './merge/event-repeats.ts';
import { prepareIncoming } from './merge/incoming.ts';
import { copyBatch, remergeIncoming } from './merge/merge-batch.ts';
import {
  type ChunksDone,
  chunksToReplay,
  countRestored,
  findRepeats,
  keepReplayed,
  resolveRepeats,
} from './merge/repeats.ts';
import { batchOf } from './merge-rows.ts';
import { replanIncoming } from './plans/plan-batch.ts';
import { summarisePlan, takeBackRepeated } from './plans/store.ts';
import { createStoringReader } from './read-chunk.ts';
import { requireLoad } from './read-store.ts';
import { noteMends } from './rejects/mends.ts';
import { allRefused } from './rejects/rejects.ts';
import { readRefusedRows } from './rejects/store.ts';
import { replayEvents } from './replay-events.ts';
import {
  beginPass,
  type FinishState,
  type LoadSource,
  readFinishState,
  readLimitedPlan,
  readLoadSource,
} from './running-store.ts';
import { type AskedSeam, askedFor } from './seam.ts';

const notOurs = 'another worker finishes the load, or it has ended';

/**
 * Ends a load whose chunks are all done: put the tally of keys that stood in several chunks right, replay those written out of order
 * and the events that stood in several chunks, note what is mended, check that the ledger balances, complete, start the next of
 * the lane. May be called twice, late, or again after half of it.
 */
export async function finishLoad(context: LoadContext, claim: TaskClaim): Promise<void> {
  const done = await findRepeats(context.db, claim.subjectId);
  if (done === null) throw new ConflictError(notOurs);
  if (done.hasRepeats) await countRepeats(context, claim, done.pass);
  await replayLoad(context, claim);
  await replayEvents(context, claim);
  const seams = done.pass === 'validate' ? [] : askedFor(context.loads, done.source);
  for (const seam of seams) {
    await decide(context, claim, seam);
    if (done.pass === 'load') await seam.settle(context, claim);
  }
  if (done.pass === 'load') await noteMends(context, claim);
  if (keepsPlan(done.pass)) await concludePlan(context, claim, done);
  const completed = await complete(context, claim, done);
  if ('tally' in completed) await afterCompletion(context, claim, completed);
  else if ('held' in completed) await afterHold(context, claim, completed);
  else await notifyQueue(context, completed.goesOn);
}

/** Checks that all rows of a plan are there, and sums them up once. */
async function concludePlan(context: LoadContext, claim: TaskClaim, done: ChunksDone): Promise<void> {
  const { environmentId, subjectId, jobId } = claim;
  await inTransaction(context.pool, async ({ db }) => {
    await nameTaskSession(db, claim);
    if ((await requireLoad({ ...context, db }, environmentId, jobId ?? '')).plan !== null) return;
    if (done.hasRewritten) await countRestored(db, subjectId, done.pass);
    const load = await requireLoad({ ...context, db }, environmentId, jobId ?? '');
    const planned: RawBuilder<unknown>[] = [];
    for (const seam of askedFor(context.loads, done.source)) planned.push(await seam.planned(db, subjectId));
    await summarisePlan(db, subjectId, { counts: load.tally, countsByKind: load.tallyByKind }, planned);
    if (!(await renewTask(db, claim))) throw new ConflictError(notOurs);
  });
}

async function countRepeats(context: LoadContext, claim: TaskClaim, pass: LoadPass): Promise<void> {
  await inTransaction(context.pool, async ({ db }) => {
    await nameTaskSession(db, claim);
    await noteEventRepeats(db, claim.subjectId);
    await resolveRepeats(db, claim.subjectId);
    if (keepsPlan(pass)) await takeBackRepeated(db, claim.subjectId);
    if (!(await renewTask(db, claim))) throw new ConflictError(notOurs);
  });
}

/** The commit that completes a load is synchronous: with it, all that its chunks wrote is on disk. */
async function complete(
  context: LoadContext,
  claim: TaskClaim,
  done: ChunksDone,
): Promise<CompletedLoad | GoesOn | Held> {
  return inTransaction(context.pool, async ({ db }) => {
    await nameTaskSession(db, claim);
    if (done.hasRewritten && (done.pass === 'load' || done.pass === 'dry_run'))
      await countRestored(db, claim.subjectId, done.pass);
    const { jobId, tally, pass } = await requireSound(context, db, claim);
    if (pass === 'validate' || pass === 'guard')
      return (await holdIfUnlike(context, db, claim, jobId)) ?? goOn(context, db, claim);
    for (const seam of askedFor(context.loads, done.source)) await seam.completed(db, claim.subjectId);
    await completeLoad(db, claim.subjectId);
    const end = await recordLoadEnd(context, db, claim.environmentId, jobId);
    if (!(await endTask(db, claim))) throw new ConflictError(notOurs);
    return { tally, ...end };
  });
}

/** Checks all that may fail a load whose chunks are done, and holds the fence. @throws FinalFailure */
async function requireSound(context: LoadContext, db: Database, claim: TaskClaim): Promise<FinishState> {
  if (!(await renewTask(db, claim))) throw new ConflictError(notOurs);
  const state = await readFinishState(db, claim.subjectId);
  const { tally, totalRows, pass, maxErrors } = state;
  if (pass !== 'validate') requireBalance(state);
  if (maxErrors !== null && tally.rejected > maxErrors)
    throw fails(tooManyRejects(tally.rejected, maxErrors));
  const planned = keepsPlan(pass) ? await readLimitedPlan(db, claim.subjectId) : null;
  const hit = planned && findGuardHit(planned, planned.plan);
  if (hit !== null) throw fails(hit);
  if (tally.rejected > 0 && tally.rejected === totalRows && !state.ownFile)
    throw fails(await allRefused({ ...context, db }, claim));
  return state;
}

/** Lets a capability decide what it does, once nothing can fail the load any more. */
async function decide(context: LoadContext, claim: TaskClaim, seam: AskedSeam): Promise<void> {
  await inTransaction(context.pool, async ({ db }) => {
    await nameTaskSession(db, claim);
    await requireSound(context, db, claim);
    await seam.decide(db, claim.subjectId);
  });
}

function requireBalance({ tally, totalRows, kindsAddUp, openChunks }: FinishState): void {
  if (!balances(tally) || tally.read !== totalRows) {
    throw new Fault(`the ledger does not balance: ${JSON.stringify(tally)}, ${totalRows} records received`);
  }
  if (!kindsAddUp) throw new Fault('the counts by kind do not add up to those of the load');
  if (openChunks > 0) throw new Fault(`${openChunks} chunks are not done, though all were counted as done`);
}

/** No guard was hit: now the chunks load, and these are their tasks. */
interface GoesOn {
  readonly goesOn: readonly DueTask[];
}

async function goOn(context: LoadContext, db: Database, claim: TaskClaim): Promise<GoesOn> {
  const goesOn = await beginPass(db, context, claim.subjectId, 'load');
  if (!(await endTask(db, claim))) throw new ConflictError(notOurs);
  return { goesOn };
}

/** The file is unlike what its guard expects: it waits for a person, and holds up nothing. */
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
  const held = findSurprises(guarded.guard, guarded.file, guarded.past);
  if (held.length === 0) return null;
  await holdLoad(db, claim.subjectId, held);
  const end = await recordLoadEnd(context, db, claim.environmentId, jobId);
  if (!(await endTask(db, claim))) throw new ConflictError(notOurs);
  return { held, ...end };
}

async function afterHold(context: LoadContext, claim: TaskClaim, { held, ...end }: Held): Promise<void> {
  context.log.warn({ ...taskFields(claim), held }, 'load held: its file is unlike what its guard expects');
  await afterEnd(context, claim.environmentId, end);
}

/** Nothing broke: the load ends failed, and this is why. */
function fails({ code, message }: TaskFailure): FinalFailure {
  return new FinalFailure(code, message);
}

/**
 * Chunks merge in any order. Where that put an older record of a key over a newer one, the records of that key
 * are merged again, this time in file order: the chunks that hold one, one after another, only those keys.
 * Doing it twice, or again after half of it, ends in the same table.
 */
async function replayLoad(context: LoadContext, claim: TaskClaim): Promise<void> {
  const chunks = await chunksToReplay(context.db, claim.subjectId);
  if (chunks.length === 0) return;
  const source = await readLoadSource(context, claim.subjectId);
  context.log.info(
    { ...taskFields(claim), chunks: chunks.length },
    'replaying keys written out of file order',
  );
  const reader = await createStoringReader(context, source);
  for (const chunkNo of chunks) {
    const range = await readChunkRange(context.db, claim.subjectId, chunkNo);
    const refused = await readRefusedRows(context.db, claim.subjectId, range);
    const isAccepted = (record: number) => !refused.has(range.firstRow + record);
    const rows = await reader.read(range);
    await replayChunk(context, claim, source, chunkNo, rows, isAccepted);
  }
}

async function replayChunk(
  context: LoadContext,
  claim: TaskClaim,
  source: LoadSource,
  chunkNo: number,
  rows: Rows,
  isAccepted: (record: number) => boolean,
): Promise<void> {
  await inTransaction(context.pool, async (transaction) => {
    const { client, db } = transaction;
    await nameTaskSession(db, claim);
    await prepareIncoming(client);
    for (const entity of entities) {
      const batch = batchOf(source, chunkNo, rows, entity, isAccepted);
      if (batch.text.length === 0) continue;
      await copyBatch(transaction, batch);
      if ((await keepReplayed(db, claim.subjectId, entity)) === 0) continue;
      const scope = { ...batch.scope, counted: 'none', keepKeys: false } as const;
      await (source.dryRun ? replanIncoming : remergeIncoming)(db, entity, scope);
    }
    await noteWritten(db, claim.subjectId, chunkNo);
    if (!(await renewTask(db, claim))) throw new ConflictError(notOurs);
  });
}

/*
 * Guards: what a load may do at most, in numbers that its caller gave. They are looked at before anything is written, by a pass over the
 * file that only looks (`LoadPass`); one that is hit fails the load.
 */

export function tooManyRejects(rejected: number, maxErrors: number): TaskFailure {
  return {
    code: 'too_many_rejects',
    message: `stopped: ${rejected} refused, ${maxErrors} allowed by max_errors; nothing written`,
  };
}

/** The first guard that a plan hits; null if there is none. */
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
  const [, limit, what] = hits.find(([count, most]) => most !== null && count > most) ?? [];
  return what === undefined ? null : { code: GUARD_EXCEEDED, message: `${what} allows ${limit}` };
}
