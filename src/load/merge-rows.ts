import { type Entity, entities } from '../domain/entity.ts';
import type { RowBuffer } from '../mapping/row-buffer.ts';
import type { Rows } from '../mapping/rows.ts';
import { type MergeScope, prepareIncoming } from '../postgres/merge/incoming.ts';
import { classifyBatch, type Merged, mergeBatch } from '../postgres/merge/merge-batch.ts';
import { createCompanies } from '../postgres/merge/upsert.ts';
import type { ChunkTally } from '../postgres/stores/chunks.ts';
import type { LoadSource } from '../postgres/stores/loads.ts';
import type { Transaction } from '../postgres/transaction.ts';
import { attempt, findRefused, type Refused } from './find-refused.ts';

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
  await createCompanies(db, { ...scope, noteKeys: scope.noteKeys && source.entity === 'auto' });
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
    noteKeys: source.chunkCount > 1,
  };
}
