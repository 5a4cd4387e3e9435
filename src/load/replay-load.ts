import { entities } from '../domain/entity.ts';
import { ConflictError } from '../domain/errors.ts';
import { jobFields } from '../domain/job-fields.ts';
import type { Rows } from '../mapping/rows.ts';
import { readChunkRange } from '../postgres/ledger/chunks.ts';
import { type FinishClaim, holdsFinish } from '../postgres/ledger/finish.ts';
import { type LoadSource, readLoadSource } from '../postgres/ledger/load-source.ts';
import { readRefusedRows } from '../postgres/ledger/rejects.ts';
import { chunksToReplay, keepReplayed } from '../postgres/ledger/repeats.ts';
import { nameFinishSession } from '../postgres/ledger/sessions.ts';
import { copyIncoming, prepareIncoming } from '../postgres/merge/incoming.ts';
import { remergeIncoming } from '../postgres/merge/merge-batch.ts';
import { inTransaction } from '../postgres/transaction.ts';
import type { LoadContext } from './context.ts';
import { createChunkReader } from './read-chunk.ts';

/**
 * Chunks merge in any order. Where that put an older record of a key over a newer one, the records of that key
 * are merged again, this time in file order: the chunks that hold one, one after another, only those keys.
 * Doing it twice, or again after half of it, ends in the same table.
 */
export async function replayLoad(context: LoadContext, claim: FinishClaim): Promise<void> {
  const chunks = await chunksToReplay(context.db, claim.loadId);
  if (chunks.length === 0) return;
  const source = await readLoadSource(context.db, claim.loadId);
  if (source.dryRun) return;
  context.log.info(
    { ...jobFields(claim), chunks: chunks.length },
    'replaying keys written out of file order',
  );
  const reader = createChunkReader(source, context.files);
  for (const chunkNo of chunks) {
    const range = await readChunkRange(context.db, claim.loadId, chunkNo);
    const refused = await readRefusedRows(context.db, claim.loadId, range);
    const rows = await reader.read(range);
    await replayChunk(
      context,
      claim,
      source,
      chunkNo,
      rows,
      (record) => !refused.has(range.firstRow + record),
    );
  }
}

async function replayChunk(
  context: LoadContext,
  claim: FinishClaim,
  source: LoadSource,
  chunkNo: number,
  rows: Rows,
  isAccepted: (record: number) => boolean,
): Promise<void> {
  await inTransaction(context.pool, async ({ client, db }) => {
    await nameFinishSession(db, claim);
    await prepareIncoming(client);
    for (const entity of entities) {
      const buffer = rows[entity];
      if (buffer.rows === 0) continue;
      await copyIncoming(client, entity, buffer.text(buffer.groups(isAccepted)));
      if ((await keepReplayed(db, claim.loadId, entity)) === 0) continue;
      await remergeIncoming(db, entity, {
        environmentId: source.environmentId,
        loadId: claim.loadId,
        chunkNo,
        removes: buffer.removes,
        flat: !buffer.removes && !buffer.nested,
        counted: 'none',
        noteKeys: false,
      });
    }
    if (!(await holdsFinish(db, claim))) throw new ConflictError('another worker finishes the load');
  });
}
