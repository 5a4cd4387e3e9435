import { type Entity, entities } from '../domain/entity.ts';
import { Fault } from '../domain/errors.ts';
import type { RowBuffer } from '../mapping/row-buffer.ts';
import type { Rows } from '../mapping/rows.ts';
import type { ChunkClaim, ChunkTally } from '../postgres/ledger/chunks.ts';
import type { LoadSource } from '../postgres/ledger/load-source.ts';
import { classifyBatch } from '../postgres/merge/classify-batch.ts';
import type { MergeScope } from '../postgres/merge/expressions.ts';
import { prepareIncoming } from '../postgres/merge/incoming.ts';
import { type Merged, mergeBatch } from '../postgres/merge/merge-batch.ts';
import { isDataError } from '../postgres/sqlstate.ts';
import type { Transaction } from '../postgres/transaction.ts';

export interface Refusal {
  /** Number of the record within the chunk. */
  readonly record: number;
  readonly message: string;
}

/** Merges all rows of a chunk, users first, then companies: the order every writer keeps, so that none deadlock. */
export async function mergeRows(
  transaction: Transaction,
  source: LoadSource,
  claim: ChunkClaim,
  rows: Rows,
  options: { readonly careful: boolean; readonly refuse: (refusal: Refusal) => void },
): Promise<ChunkTally> {
  await prepareIncoming(transaction.client);
  const tally = { inserted: 0, updated: 0, unchanged: 0, superseded: 0, rejected: rows.rejects.length };
  for (const entity of entities) {
    const buffer = rows[entity];
    if (buffer.rows === 0) continue;
    let refused = 0;
    const merge = (text: Buffer, keys: number): Promise<Merged> => {
      const batch = { entity, text, rows: keys, scope: scopeOf(source, claim, buffer) };
      return source.dryRun ? classifyBatch(transaction, batch) : mergeBatch(transaction, batch);
    };
    const merged = options.careful
      ? await mergeCarefully(transaction, entity, buffer, merge, (refusal) => {
          refused++;
          options.refuse(refusal);
        })
      : await merge(buffer.finish(), buffer.rows - buffer.repeated);
    const keys = merged.inserted + merged.updated + merged.unchanged + merged.superseded;
    tally.inserted += merged.inserted;
    tally.updated += merged.updated;
    tally.unchanged += merged.unchanged;
    // What stands for a record and is neither merged nor refused has a later record with its key in this chunk.
    tally.superseded += merged.superseded + buffer.counted - keys - refused;
    tally.rejected += refused;
  }
  return tally;
}

function scopeOf(source: LoadSource, claim: ChunkClaim, buffer: RowBuffer): MergeScope {
  return {
    environmentId: source.environmentId,
    loadId: source.loadId,
    chunkNo: claim.chunkNo,
    removes: buffer.removes,
    flat: !buffer.removes && !buffer.nested,
    counted: buffer.counted === 0 ? 'none' : buffer.counted === buffer.rows ? 'all' : 'some',
    noteKeys: source.chunkCount > 1,
  };
}

const nothing: Merged = { inserted: 0, updated: 0, unchanged: 0, superseded: 0 };

/**
 * For the case that the database refused the chunk's data although every record passed our checks: halves the
 * batch, each half in a savepoint, until the records at fault stand alone.
 */
async function mergeCarefully(
  { client }: Transaction,
  entity: Entity,
  buffer: RowBuffer,
  merge: (text: Buffer, keys: number) => Promise<Merged>,
  refuse: (refusal: Refusal) => void,
): Promise<Merged> {
  const mergeHeads = async (heads: readonly number[]): Promise<Merged> => {
    await client.query('savepoint half');
    try {
      const merged = await merge(Buffer.concat(heads.map((head) => buffer.text(head))), heads.length);
      await client.query(
        'delete from incoming_users; delete from incoming_companies; release savepoint half',
      );
      return merged;
    } catch (error) {
      if (!isDataError(error)) throw error;
      await client.query('rollback to savepoint half; release savepoint half');
      const [head] = heads;
      if (heads.length === 1 && head !== undefined) {
        refuseKey(entity, buffer, head, error, refuse);
        return nothing;
      }
    }
    const middle = heads.length >> 1;
    const first = await mergeHeads(heads.slice(0, middle));
    const second = await mergeHeads(heads.slice(middle));
    return {
      inserted: first.inserted + second.inserted,
      updated: first.updated + second.updated,
      unchanged: first.unchanged + second.unchanged,
      superseded: first.superseded + second.superseded,
    };
  };
  return mergeHeads(buffer.heads());
}

function refuseKey(
  entity: Entity,
  buffer: RowBuffer,
  head: number,
  error: unknown,
  refuse: (refusal: Refusal) => void,
): void {
  const message = `the database refuses the record: ${error instanceof Error ? error.message : String(error)}`;
  for (const row of buffer.chain(head)) {
    if (!buffer.isCounted(row)) throw new Fault(`a row of ${entity} that stands for no record: ${message}`);
    refuse({ record: buffer.recordOf(row), message });
  }
}
