import { ConflictError } from '../base/errors.ts';
import { propertyEntities } from '../domain/entity.ts';
import {
  addOutcomes,
  type ChunkRange,
  countedKinds,
  noOutcomes,
  noOutcomesByKind,
  toTally,
} from '../domain/load.ts';
import type { Reason, Reject, RejectCause } from '../domain/reject.ts';
import { type TaskClaim, taskFields } from '../domain/task.ts';
import { inTransaction, type Transaction } from '../postgres/database.ts';
import { isDataError, isDeadlock, isMissingPartition } from '../postgres/sqlstate.ts';
import { renewTask } from '../tasks/store.ts';
import { notifyQueue } from '../tasks/task-kind.ts';
import { nameTaskSession } from '../tasks/worker-store.ts';
import {
  type ChunkTally,
  endValidation,
  finishChunk,
  type LoadProgress,
  readChunkRange,
} from './chunk-store.ts';
import type { LoadContext } from './context.ts';
import { withNamed } from './create-named.ts';
import { afterCompletion, type CompletedLoad, failLoad, recordLoadEnd } from './end-load.ts';
import { tooManyRejects } from './finish-load.ts';
import { canBeInserted, expectsNewUsers, insertRows, learn } from './insert-rows.ts';
import type { Rows } from './map/rows.ts';
import { newUserStamp } from './merge/merge-batch.ts';
import { type MergedKinds, mergeRows, mergeRowsCarefully } from './merge-rows.ts';
import { type ChunkReader, createStoringReader, type FindRefusedUsers, readChanged } from './read-chunk.ts';
import { RejectCauses } from './rejects/causes.ts';
import { allRefused } from './rejects/rejects.ts';
import { type CountedReject, insertRejects } from './rejects/store.ts';
import { type LoadSource, readLoadSource } from './running-store.ts';
import { kindOf } from './seam.ts';

const notOurs = 'another attempt owns the task, or its load has ended';

/**
 * Does one chunk of one load: read and map, merge, count in the ledger; the last two in one transaction. Then what the chunk's end
 * means for its load; should this process die before that, the reconciler does it.
 */
export async function processChunk(context: LoadContext, claim: TaskClaim): Promise<void> {
  const { rejected, maxErrors, isRefusedSoFar, completed, next } = await loadChunk(context, claim);
  if (completed !== null) {
    await afterCompletion(context, claim, completed);
  } else if (maxErrors !== null && rejected > maxErrors) {
    await failLoad(context, claim.subjectId, tooManyRejects(rejected, maxErrors));
  } else if (isRefusedSoFar) {
    await failLoad(context, claim.subjectId, await allRefused(context, claim));
  } else if (next !== null) {
    await notifyQueue(context, [next]);
  }
}

/** Asks the capabilities that the environment uses which users they refuse. What they answer changes only between loads. */
function refusalsOf(
  { db, refusals }: LoadContext,
  { environmentId, uses }: LoadSource,
): FindRefusedUsers | null {
  const seams = refusals.filter(({ use }) => uses.includes(use));
  if (seams.length === 0) return null;
  return async (ids) => {
    const refused = new Map<string, Reason>();
    for (const { find, reason } of seams)
      for (const id of await find(db, environmentId, ids)) refused.set(id, reason);
    return refused;
  };
}

interface DoneChunk extends LoadProgress {
  /** The load, if it was completed with its only chunk. */
  readonly completed: CompletedLoad | null;
}

async function loadChunk(context: LoadContext, claim: TaskClaim): Promise<DoneChunk> {
  const { db, memory } = context;
  const source = await readLoadSource(context, claim.subjectId);
  const chunk = await readChunkRange(db, claim.subjectId, claim.part);
  const kind = kindOf(context.loads, source.type);
  if (kind !== undefined) return { ...(await kind.chunk(context, claim, chunk)), completed: null };
  return memory.withRows(async (rows) => {
    const reader = await createStoringReader(context, source, rows, refusalsOf(context, source));
    if (source.pass === 'validate') {
      await reader.read(chunk, { hasDigests: false });
      return keepRejects(context, source, claim, countRejects(source, chunk, rows));
    }
    try {
      return await readAndMerge(context, source, { claim, chunk }, reader);
    } catch (error) {
      if (!(error instanceof TooManyRefused)) throw error;
      return keepRejects(context, source, claim, error.rejects);
    }
  });
}

async function readAndMerge(
  context: LoadContext,
  source: LoadSource,
  claimed: ClaimedChunk,
  reader: ChunkReader,
): Promise<DoneChunk> {
  const { rows } = reader;
  const { chunk } = claimed;
  const inserted = await tryInserting(context, source, claimed, reader);
  if (inserted !== null) return inserted;
  await readChanged(context, source, chunk, reader);
  requireFewRefused(source, () => countRejects(source, chunk, rows));
  await prepareChunk(context, source, rows);
  return mergeRead(context, source, claimed, rows);
}

/** Merges the chunk that was read. */
async function mergeRead(
  context: LoadContext,
  source: LoadSource,
  { claim, chunk }: ClaimedChunk,
  rows: Rows,
): Promise<DoneChunk> {
  try {
    return await mergeChunk(context, source, { claim, chunk }, rows, false);
  } catch (error) {
    if (!isDataError(error)) throw error;
    // An attempt that comes too late collides with the rows of the chunk's new owner.
    if (!(await renewTask(context.db, claim))) throw new ConflictError(notOurs);
    context.log.warn(
      { ...taskFields(claim), err: error },
      'chunk is merged without the records that the database refuses',
    );
    return mergeChunk(context, source, { claim, chunk }, rows, true);
  }
}

/** More records of a load of one chunk are refused than it allows, so none is written. */
class TooManyRefused extends Error {
  override readonly name = 'TooManyRefused';
  readonly rejects: readonly CountedReject[];

  constructor(rejects: readonly CountedReject[]) {
    super('more records are refused than max_errors allows');
    this.rejects = rejects;
  }
}

/** Throws `TooManyRefused`. Only a load of one chunk has no pass that counts refused records before it writes. */
function requireFewRefused(
  { chunkCount, maxErrors, pass }: LoadSource,
  findRejects: () => readonly CountedReject[],
): void {
  if (pass !== 'load' || chunkCount > 1 || maxErrors === null) return;
  const rejects = findRejects();
  if (rejects.length > maxErrors) throw new TooManyRefused(rejects);
}

/** Ends a chunk of which only the refused records are kept. */
async function keepRejects(
  context: LoadContext,
  source: LoadSource,
  claim: TaskClaim,
  rejects: readonly CountedReject[],
): Promise<DoneChunk> {
  return inTransaction(context.pool, async (transaction) => {
    const { db } = transaction;
    await nameTaskSession(db, claim);
    await insertRejects(transaction, source, rejects, causesOf(source));
    const progress = await endValidation(db, claim, rejects.length);
    if (progress === null) throw new ConflictError(notOurs);
    return { ...progress, completed: null };
  });
}

interface ClaimedChunk {
  readonly claim: TaskClaim;
  readonly chunk: ChunkRange;
}

/** Writes a chunk the short way if its users are all new. Returns null if they are not, and then nothing was written. */
async function tryInserting(
  context: LoadContext,
  source: LoadSource,
  { claim, chunk }: ClaimedChunk,
  reader: ChunkReader,
): Promise<DoneChunk | null> {
  const learned = context.memory.of(claim.subjectId);
  if (chunk.oversized || !(await expectsNewUsers(context.db, source, learned))) return null;
  const rows = await reader.read(chunk, {
    stamp: newUserStamp({ ...source, chunkNo: claim.part }),
  });
  requireFewRefused(source, () => countRejects(source, chunk, rows));
  if (canBeInserted(rows)) {
    await prepareChunk(context, source, rows);
    try {
      return await commitChunk(context, source, { claim, chunk }, rows, (transaction) =>
        insertRows(transaction, source, claim.part, rows, learned),
      );
    } catch (error) {
      // A key is known after all (or another defect of the data, which merging names): from now on, merge.
      if (!isDataError(error) && !isDeadlock(error)) throw error;
    }
  }
  learned.users = 'known';
  return null;
}

async function mergeChunk(
  context: LoadContext,
  source: LoadSource,
  { claim, chunk }: ClaimedChunk,
  rows: Rows,
  careful: boolean,
): Promise<DoneChunk> {
  const refused: CountedReject[] = [];
  const memory = context.memory.of(claim.subjectId);
  return commitChunk(context, source, { claim, chunk }, rows, async (transaction) => {
    refused.length = 0;
    const kinds = careful
      ? await mergeRowsCarefully(transaction, source, claim.part, rows, (record, kind, message) => {
          const reject = rows.rejectRecord(record, message, chunk);
          refused.push({ reject, kind: source.entity === 'auto' ? kind : null });
        })
      : await mergeRows(transaction, source, claim.part, rows, memory);
    requireFewRefused(source, () => [...countRejects(source, chunk, rows), ...refused]);
    await insertRejects(transaction, source, refused, causesOf(source));
    learn(memory, kinds);
    return kinds;
  });
}

/** Commits a chunk in one transaction: rows, rejects, tally, the task, and the load if this is its only chunk. */
async function commitChunk(
  context: LoadContext,
  source: LoadSource,
  { claim, chunk }: ClaimedChunk,
  rows: Rows,
  write: (transaction: Transaction) => Promise<MergedKinds>,
): Promise<DoneChunk> {
  try {
    const { tally, ...done } = await inTransaction(
      context.pool,
      async (transaction) => {
        await nameTaskSession(transaction.db, claim);
        const kinds = await withNamed(transaction, source, claim.part, rows, () => write(transaction));
        const rejects = countRejects(source, chunk, rows);
        await insertRejects(transaction, source, rejects, causesOf(source));
        const tally = countChunk(source, rows, kinds, rejects);
        const progress = await finishChunk(
          transaction.db,
          claim,
          tally,
          context.loads.flatMap(({ asked }) => asked?.option ?? []),
        );
        if (progress === null) throw new ConflictError(notOurs);
        await rows.stage?.keep(transaction.db, claim.subjectId);
        if (!progress.isCompleted) return { ...progress, tally, completed: null };
        const end = await recordLoadEnd(context, transaction.db, claim.environmentId, source.jobId);
        return { ...progress, tally, completed: { tally: toTally(addOutcomes(noOutcomes, tally)), ...end } };
      },
      { asynchronous: mayCommitLater(source) },
    );
    const { unchanged, rejected } = tally;
    if (!source.dryRun)
      context.rates.add(claim.environmentId, {
        accepted: chunk.rowCount - unchanged - rejected,
        unchanged,
        rejected,
      });
    return done;
  } catch (error) {
    if (error instanceof Error && isMissingPartition(error.cause)) context.memory.eventPartitions.forget();
    throw error;
  }
}

/**
 * Tells whether the commit of a chunk may return before it is on disk, as the only one here may: rows and ledger are lost together and done
 * again together. Only if they are on one server; and not of the chunk that completes its load, which waits for the disk.
 */
function mayCommitLater({ chunkCount }: LoadSource): boolean {
  return chunkCount > 1;
}

/** Counts the records that mapping refused, by kind where a file may hold several. */
function countRejects({ entity }: LoadSource, { firstRow }: ChunkRange, rows: Rows): CountedReject[] {
  return rows.rejects.map((reject) => ({
    reject,
    kind: entity === 'auto' ? (rows.kinds.of(reject.row - firstRow) ?? 'unknown') : null,
  }));
}

/** Gives refused records of a load their causes. A chunk that has none pays nothing. */
function causesOf(source: LoadSource): (reject: Reject) => RejectCause {
  let causes: RejectCauses | null = null;
  return (reject) => {
    causes ??= new RejectCauses(source);
    return causes.of(reject);
  };
}

/** The tally of a chunk; by kind too where a file may hold several. */
function countChunk(
  source: LoadSource,
  rows: Rows,
  merged: MergedKinds,
  rejects: readonly CountedReject[],
): ChunkTally {
  const kinds = { ...noOutcomesByKind, ...merged };
  for (const { kind } of rejects) {
    const of = kind ?? 'unknown';
    kinds[of] = addOutcomes(kinds[of], { rejected: 1 });
  }
  const sum = countedKinds.reduce((total, kind) => addOutcomes(total, kinds[kind]), noOutcomes);
  return {
    ...sum,
    dropped: rows.dropped,
    kinds: source.entity === 'auto' ? kinds : null,
    hasEventTypes: source.entity === 'auto' && rows.kinds.some,
  };
}

/** Creates names and partitions of events before the transaction that needs them. */
async function prepareChunk(
  { knownProperties, db, pool, memory }: LoadContext,
  { dryRun, environmentId }: LoadSource,
  rows: Rows,
): Promise<void> {
  if (dryRun) return;
  for (const entity of propertyEntities) {
    await knownProperties.learn(db, environmentId, entity, rows.types[entity].types());
  }
  if (rows.events.rows === 0) return;
  const names = new Map(Array.from(rows.events.names, (name) => [name, null]));
  await knownProperties.learn(db, environmentId, 'event_names', names);
  await memory.eventPartitions.ensure(pool, [...rows.events.months]);
}
