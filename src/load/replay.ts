import { ConflictError } from '../base/errors.ts';
import { entities } from '../domain/entity.ts';
import { type TaskClaim, taskFields } from '../domain/task.ts';
import { renewTask } from '../tasks/store.ts';
import { inTaskTransaction } from '../tasks/worker-store.ts';
import { readChunkRange, recordWritten } from './chunk-store.ts';
import type { LoadContext } from './context.ts';
import type { Rows } from './map/rows.ts';
import { prepareIncoming } from './merge/incoming.ts';
import { copyBatch, remergeIncoming } from './merge/merge-batch.ts';
import { chunksToReplay, keepReplayed } from './merge/repeats.ts';
import { batchOf } from './merge-rows.ts';
import { replanIncoming } from './plans/plan-batch.ts';
import { createStoringReader } from './read-chunk.ts';
import { readRefusedRows } from './rejects/store.ts';
import { type LoadSource, readLoadSource } from './running-store.ts';

const lostClaim = 'another worker finishes the load, or it has ended';

/**
 * Repeats the merge of keys for which an older record has replaced a newer one. This can happen
 * because chunks are merged in any order. Reads only the chunks that contain such keys. A replay
 * may be interrupted or repeated.
 */
export async function replayLoad(context: LoadContext, claim: TaskClaim): Promise<void> {
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
  await inTaskTransaction(context.pool, claim, async (transaction) => {
    const { client, db } = transaction;
    await prepareIncoming(client);
    for (const entity of entities) {
      const batch = batchOf(source, chunkNo, rows, entity, isAccepted);
      if (batch.text.length === 0) continue;
      await copyBatch(transaction, batch);
      if ((await keepReplayed(db, claim.subjectId, entity)) === 0) continue;
      const scope = { ...batch.scope, counted: 'none', keepKeys: false } as const;
      await (source.dryRun ? replanIncoming : remergeIncoming)(db, entity, scope);
    }
    await recordWritten(db, claim.subjectId, chunkNo);
    if (!(await renewTask(db, claim))) throw new ConflictError(lostClaim);
  });
}
