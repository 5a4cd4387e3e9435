import type { Reason } from '../domain/reject.ts';
import { type TaskClaim, taskFields } from '../domain/task.ts';
import type { Transaction } from '../postgres/database.ts';
import { isDataError, isDeadlock } from '../postgres/sqlstate.ts';
import { holdTask } from '../tasks/store.ts';
import { notifyQueue } from '../tasks/task-kind.ts';
import { readChunkRange } from './chunk-store.ts';
import {
  type ClaimedChunk,
  causesOf,
  commitChunk,
  commitWithCompanies,
  countRejects,
  type DoneChunk,
  keepRejects,
  prepareChunk,
  requireFewRefused,
  TooManyRefused,
} from './commit-chunk.ts';
import type { LoadContext } from './context.ts';
import { afterCompletion, failLoad } from './end.ts';
import { canBeInserted, expectsNewUsers, insertChunk, rememberUsers } from './insert-rows.ts';
import type { Rows } from './map/rows.ts';
import { newUserStamp } from './merge/merge-batch.ts';
import { type MergedKinds, mergeRows, mergeRowsCarefully } from './merge-rows.ts';
import { type ChunkReader, createStoringReader, type FindRefusedUsers, readChanged } from './read-chunk.ts';
import { allRefused, tooManyRejects } from './rejects/rejects.ts';
import { type CountedReject, insertRejects } from './rejects/store.ts';
import { type LoadSource, readLoadSource } from './running-store.ts';
import { kindOf } from './seam.ts';

/**
 * Reads, maps and merges one chunk, and counts its rows in the same transaction. After the commit,
 * fails the load if it exceeds a limit, otherwise notifies the queue. If this process dies after
 * the commit, the reconciler does this later.
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

/**
 * Returns a search for refused users, or `null` if no capability refuses users. The refused users
 * stay the same while a load runs.
 */
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
    // If this attempt has lost its task, the error may come from a collision with the next attempt.
    await holdTask(context.db, claim);
    context.log.warn(
      { ...taskFields(claim), err: error },
      'chunk is merged without the records that the database refuses',
    );
    return mergeChunk(context, source, { claim, chunk }, rows, true);
  }
}

/**
 * Inserts the rows of a chunk, which is faster than merging. Writes nothing and returns `null` if
 * the rows must be merged.
 */
async function tryInserting(
  context: LoadContext,
  source: LoadSource,
  { claim, chunk }: ClaimedChunk,
  reader: ChunkReader,
): Promise<DoneChunk | null> {
  const loadMemory = context.memory.of(claim.subjectId);
  if (chunk.oversized || !(await expectsNewUsers(context.db, source, loadMemory))) return null;
  const rows = await reader.read(chunk, {
    stamp: newUserStamp({ ...source, chunkNo: claim.part }),
  });
  requireFewRefused(source, () => countRejects(source, chunk, rows));
  if (canBeInserted(rows)) {
    await prepareChunk(context, source, rows);
    try {
      return await insertChunk(context, source, { claim, chunk }, rows);
    } catch (error) {
      // A deadlock, an existing user or a record that the database refuses is expected here. The
      // chunk is then merged.
      if (!isDataError(error) && !isDeadlock(error)) throw error;
    }
  }
  loadMemory.users = 'known';
  return null;
}

async function mergeChunk(
  context: LoadContext,
  source: LoadSource,
  claimed: ClaimedChunk,
  rows: Rows,
  isCareful: boolean,
): Promise<DoneChunk> {
  const { claim, chunk } = claimed;
  const refused: CountedReject[] = [];
  const memory = context.memory.of(claim.subjectId);
  const write = async (transaction: Transaction, companies?: readonly string[]): Promise<MergedKinds> => {
    refused.length = 0;
    const kinds = isCareful
      ? await mergeRowsCarefully(transaction, source, claim.part, rows, (record, kind, message) => {
          const reject = rows.rejectRecord(record, message, chunk);
          refused.push({ reject, kind: source.entity === 'auto' ? kind : null });
        })
      : await mergeRows(transaction, source, claim.part, rows, memory, companies);
    requireFewRefused(source, () => [...countRejects(source, chunk, rows), ...refused]);
    await insertRejects(transaction, source, refused, causesOf(source));
    rememberUsers(memory, kinds);
    return kinds;
  };
  // Users that the database may refuse, and users of a dry run, must not create companies.
  return isCareful || source.dryRun
    ? commitChunk(context, source, claimed, rows, write)
    : commitWithCompanies(context, source, claimed, rows, write);
}
