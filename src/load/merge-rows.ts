import type pg from 'pg';
import { type Entity, entities } from '../domain/entity.ts';
import type { RowBuffer } from '../mapping/row-buffer.ts';
import type { Rows } from '../mapping/rows.ts';
import type { Transaction } from '../postgres/database.ts';
import { type MergeScope, prepareIncoming } from '../postgres/merge/incoming.ts';
import { classifyBatch, type Merged, mergeBatch } from '../postgres/merge/merge-batch.ts';
import { createCompanies } from '../postgres/merge/upsert.ts';
import { isDataError } from '../postgres/sqlstate.ts';
import type { ChunkTally } from '../postgres/stores/chunks.ts';
import type { LoadSource } from '../postgres/stores/loads.ts';

const none: Refused = new Map();

/**
 * Merges all rows of a chunk: users first, then companies, then those that only users name. Every writer keeps this
 * order, so that deadlocks are rare (and such a chunk is simply done again).
 */
export async function mergeRows(
  transaction: Transaction,
  source: LoadSource,
  chunkNo: number,
  rows: Rows,
): Promise<ChunkTally> {
  await prepareIncoming(transaction.client);
  return mergeAccepted(transaction, source, chunkNo, rows, none);
}

/**
 * For the case that the database refused the chunk's data although every record passed our checks: leaves out the
 * records at fault and merges all others. `refuse` is told of each, with its number within the chunk.
 */
export async function mergeRowsCarefully(
  transaction: Transaction,
  source: LoadSource,
  chunkNo: number,
  rows: Rows,
  refuse: (record: number, message: string) => void,
): Promise<ChunkTally> {
  await prepareIncoming(transaction.client);
  const refused = new Map<number, string>();
  for (;;) {
    const merged = await attempt(transaction.client, 'keep', () =>
      mergeAccepted(transaction, source, chunkNo, rows, refused),
    );
    if (!('error' in merged)) {
      for (const [record, message] of refused) refuse(record, message);
      return merged.result;
    }
    const known = refused.size;
    for (const entity of entities) {
      await findRefused(transaction.client, rows[entity], refused, async (groups) => {
        await mergeGroups(transaction, source, chunkNo, rows, entity, groups);
        if (entity === 'users') await createTheirCompanies(transaction, source, chunkNo, rows);
      });
    }
    // Not the data's fault, or not one record's.
    if (refused.size === known) throw merged.error;
  }
}

async function mergeAccepted(
  transaction: Transaction,
  source: LoadSource,
  chunkNo: number,
  rows: Rows,
  refused: Refused,
): Promise<ChunkTally> {
  const rejected = rows.rejects.length + refused.size;
  const tally = { inserted: 0, updated: 0, unchanged: 0, superseded: 0, rejected };
  for (const entity of entities) {
    const buffer = rows[entity];
    if (buffer.rows === 0) continue;
    const groups = refused.size === 0 ? null : buffer.groups((record) => !refused.has(record));
    const merged = await mergeGroups(transaction, source, chunkNo, rows, entity, groups);
    const counted = groups === null ? buffer.counted : buffer.countedIn(groups);
    const keys = merged.inserted + merged.updated + merged.unchanged + merged.superseded;
    tally.inserted += merged.inserted;
    tally.updated += merged.updated;
    tally.unchanged += merged.unchanged;
    // What stands for a record and is not merged has a later record with its key in this chunk.
    tally.superseded += merged.superseded + counted - keys;
  }
  await createTheirCompanies(transaction, source, chunkNo, rows);
  return tally;
}

/** Those that the merged users name and that are new. */
async function createTheirCompanies(
  { db }: Transaction,
  source: LoadSource,
  chunkNo: number,
  rows: Rows,
): Promise<void> {
  if (rows.users.rows === 0 || source.dryRun) return;
  const scope = scopeOf(source, chunkNo, rows.users);
  // Only where companies may have records of their own does it matter who made them.
  await createCompanies(db, { ...scope, keepKeys: scope.keepKeys && source.entity === 'auto' });
}

/** All rows of the entity, or some keys given by their rows. */
function mergeGroups(
  transaction: Transaction,
  source: LoadSource,
  chunkNo: number,
  rows: Rows,
  entity: Entity,
  groups: readonly (readonly number[])[] | null,
): Promise<Merged> {
  const buffer = rows[entity];
  const scope = scopeOf(source, chunkNo, buffer);
  const batch =
    groups === null
      ? { entity, scope, text: buffer.finish(), rows: buffer.rows - buffer.repeated }
      : { entity, scope, text: buffer.text(groups), rows: groups.length };
  return source.dryRun ? classifyBatch(transaction, batch) : mergeBatch(transaction, batch);
}

function scopeOf(source: LoadSource, chunkNo: number, buffer: RowBuffer): MergeScope {
  return {
    environmentId: source.environmentId,
    loadId: source.loadId,
    chunkNo,
    removes: buffer.removes,
    flat: !buffer.removes && !buffer.nested,
    counted: buffer.counted === 0 ? 'none' : buffer.counted === buffer.rows ? 'all' : 'some',
    keepKeys: source.chunkCount > 1,
  };
}

/** Records (by their number within the chunk) that the database refuses, and what it says. */
type Refused = ReadonlyMap<number, string>;

type Groups = readonly (readonly number[])[];

/**
 * Adds to `refused` the records of `buffer` that the database refuses to merge. Halves them until those at fault stand
 * alone; of records that are refused only together, the last is at fault. Every trial is undone.
 */
async function findRefused(
  client: pg.PoolClient,
  buffer: RowBuffer,
  refused: Map<number, string>,
  merge: (groups: Groups) => Promise<unknown>,
): Promise<void> {
  const trial = async (records: readonly number[]): Promise<string | null> => {
    const tried = new Set(records);
    const outcome = await attempt(client, 'undo', () => merge(buffer.groups((record) => tried.has(record))));
    return 'error' in outcome ? outcome.error.message : null;
  };
  const search = async (records: readonly number[]): Promise<boolean> => {
    const error = records.length === 0 ? null : await trial(records);
    if (error === null) return false;
    const middle = records.length >> 1;
    if (middle === 0) return refuse(records, error);
    const first = await search(records.slice(0, middle));
    const second = await search(records.slice(middle));
    return first || second || refuse(await shortestRefused(records, middle), error);
  };
  /** The fewest records from the beginning on that are refused; more than `fine` of them. */
  const shortestRefused = async (records: readonly number[], fine: number): Promise<readonly number[]> => {
    let most = records.length;
    for (let least = fine + 1; least < most; ) {
      const middle = (least + most) >> 1;
      if ((await trial(records.slice(0, middle))) === null) least = middle + 1;
      else most = middle;
    }
    return records.slice(0, most);
  };
  const refuse = (records: readonly number[], error: string): boolean => {
    const last = records.at(-1);
    if (last !== undefined) refused.set(last, `the database refuses the record: ${error}`);
    return true;
  };
  await search(buffer.records().filter((record) => !refused.has(record)));
}

/** Runs `work` in a savepoint. What the database says against the data is a result. */
async function attempt<T>(
  client: pg.PoolClient,
  then: 'keep' | 'undo',
  work: () => Promise<T>,
): Promise<{ readonly result: T } | { readonly error: Error }> {
  await client.query('savepoint attempt');
  try {
    const result = await work();
    await client.query(
      then === 'keep'
        ? 'release savepoint attempt'
        : 'rollback to savepoint attempt; release savepoint attempt',
    );
    return { result };
  } catch (error) {
    if (!(error instanceof Error && isDataError(error))) throw error;
    await client.query('rollback to savepoint attempt; release savepoint attempt');
    return { error };
  }
}
