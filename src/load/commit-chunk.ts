import { propertyEntities } from '../domain/entity.ts';
import {
  addOutcomes,
  type ChunkRange,
  countedKinds,
  noOutcomes,
  noOutcomesByKind,
  toTally,
} from '../domain/load.ts';
import { keyOf } from '../domain/option-table.ts';
import type { Reject, RejectCause } from '../domain/reject.ts';
import type { TaskClaim } from '../domain/task.ts';
import type { Transaction } from '../postgres/database.ts';
import { isMissingPartition } from '../postgres/sqlstate.ts';
import { LostClaim } from '../tasks/store.ts';
import { inTaskTransaction } from '../tasks/worker-store.ts';
import { type ChunkTally, endValidation, finishChunk, type LoadProgress } from './chunk-store.ts';
import type { LoadContext } from './context.ts';
import { withReferenced } from './create-referenced.ts';
import { type CompletedLoad, recordLoadEnd } from './end.ts';
import type { Rows } from './map/rows.ts';
import { companyIds, type MergedKinds } from './merge-rows.ts';
import { RejectCauses } from './rejects/causes.ts';
import { type CountedReject, insertRejects } from './rejects/store.ts';
import type { LoadSource } from './running-store.ts';

/* Commits the rows, rejects and counts of a chunk in one transaction, if it owns the task. */

export interface DoneChunk extends LoadProgress {
  /** The load, if this chunk was its only chunk and has completed it. Otherwise `null`. */
  readonly completed: CompletedLoad | null;
}

export interface ClaimedChunk {
  readonly claim: TaskClaim;
  readonly chunk: ChunkRange;
}

/** Thrown if a single-chunk load exceeds `max_errors`. Nothing has been committed. */
export class TooManyRefused extends Error {
  override readonly name = 'TooManyRefused';
  readonly rejects: readonly CountedReject[];

  constructor(rejects: readonly CountedReject[]) {
    super('more records are refused than max_errors allows');
    this.rejects = rejects;
  }
}

/**
 * Checks `max_errors` for single-chunk loads. Loads with several chunks have a pass for this check.
 * @throws TooManyRefused
 */
export function requireFewRefused(
  { chunkCount, maxErrors, pass }: LoadSource,
  findRejects: () => readonly CountedReject[],
): void {
  if (pass !== 'load' || chunkCount > 1 || maxErrors === null) return;
  const rejects = findRejects();
  if (rejects.length > maxErrors) throw new TooManyRefused(rejects);
}

export async function keepRejects(
  context: LoadContext,
  source: LoadSource,
  claim: TaskClaim,
  rejects: readonly CountedReject[],
): Promise<DoneChunk> {
  return inTaskTransaction(context.pool, claim, async (transaction) => {
    const { db } = transaction;
    await insertRejects(transaction, source, rejects, causesOf(source));
    const progress = await endValidation(db, claim, rejects.length);
    if (progress === null) throw new LostClaim();
    return { ...progress, completed: null };
  });
}

/** If the load has only this chunk, also completes the load. */
export async function commitChunk(
  context: LoadContext,
  source: LoadSource,
  { claim, chunk }: ClaimedChunk,
  rows: Rows,
  write: (transaction: Transaction) => Promise<MergedKinds>,
): Promise<DoneChunk> {
  try {
    const { tally, ...result } = await inTaskTransaction(
      context.pool,
      claim,
      async (transaction) => {
        const kinds = await withReferenced(transaction, source, claim.part, rows, () => write(transaction));
        const rejects = countRejects(source, chunk, rows);
        await insertRejects(transaction, source, rejects, causesOf(source));
        const tally = countChunk(source, rows, kinds, rejects);
        const progress = await finishChunk(
          transaction.db,
          claim,
          tally,
          context.loads.flatMap(({ hooks }) => (hooks?.end === undefined ? [] : keyOf(hooks.option))),
        );
        if (progress === null) throw new LostClaim();
        await rows.stage?.keep(transaction.db, claim.subjectId);
        if (!progress.isCompleted) return { ...progress, tally, completed: null };
        const end = await recordLoadEnd(context, transaction.db, claim.environmentId, source.jobId);
        return { ...progress, tally, completed: { tally: toTally(addOutcomes(noOutcomes, tally)), ...end } };
      },
      { isAsynchronous: mayCommitLater(source) },
    );
    const { unchanged, rejected } = tally;
    if (!source.dryRun)
      context.rates.add(claim.environmentId, {
        accepted: chunk.rowCount - unchanged - rejected,
        unchanged,
        rejected,
      });
    return result;
  } catch (error) {
    if (error instanceof Error && isMissingPartition(error.cause)) context.memory.eventPartitions.forget();
    throw error;
  }
}

/**
 * Commits a chunk. Passes to `write` the companies of the chunk's users, except those that are
 * known to exist. After the commit, remembers the companies that were passed.
 */
export async function commitWithCompanies(
  context: LoadContext,
  source: LoadSource,
  claimed: ClaimedChunk,
  rows: Rows,
  write: (transaction: Transaction, companies: readonly string[]) => Promise<MergedKinds>,
): Promise<DoneChunk> {
  const companies = rows.users.companies();
  let recordCompanies = (): void => undefined;
  const result = await commitChunk(context, source, claimed, rows, (transaction) => {
    const existing = context.memory.companiesOf(transaction.client, source);
    const missing = existing.missing(companies);
    recordCompanies = () => existing.note(missing);
    return write(transaction, companyIds(missing));
  });
  recordCompanies();
  return result;
}

/**
 * True if a COMMIT may return before its data is on disk. A crash of the database server then loses
 * the rows and the ledger entry together. The COMMIT that completes a load waits for the disk.
 */
function mayCommitLater({ chunkCount }: LoadSource): boolean {
  return chunkCount > 1;
}

/** The kind is `null` if the load does not count by kind. */
export function countRejects({ entity }: LoadSource, { firstRow }: ChunkRange, rows: Rows): CountedReject[] {
  return rows.rejects.map((reject) => ({
    reject,
    kind: entity === 'auto' ? (rows.kinds.of(reject.row - firstRow) ?? 'unknown') : null,
  }));
}

/** Creates the `RejectCauses` for the first reject, because most chunks have none. */
export function causesOf(source: LoadSource): (reject: Reject) => RejectCause {
  let causes: RejectCauses | null = null;
  return (reject) => {
    causes ??= new RejectCauses(source);
    return causes.of(reject);
  };
}

function countChunk(
  source: LoadSource,
  rows: Rows,
  merged: MergedKinds,
  rejects: readonly CountedReject[],
): ChunkTally {
  const kinds = { ...noOutcomesByKind, ...merged };
  for (const { kind } of rejects) {
    const countedKind = kind ?? 'unknown';
    kinds[countedKind] = addOutcomes(kinds[countedKind], { rejected: 1 });
  }
  const sum = countedKinds.reduce((total, kind) => addOutcomes(total, kinds[kind]), noOutcomes);
  return {
    ...sum,
    dropped: rows.dropped,
    kinds: source.entity === 'auto' ? kinds : null,
    hasEventTypes: source.entity === 'auto' && rows.kinds.some,
  };
}

/** Creates the properties, event names and partitions that the transaction of the chunk needs. */
export async function prepareChunk(
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
