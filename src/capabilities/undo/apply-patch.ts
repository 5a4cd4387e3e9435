import { entities, kindOfEntity } from '../../domain/entity.ts';
import {
  addOutcomes,
  type ChunkRange,
  countedKinds,
  noOutcomes,
  noOutcomesByKind,
} from '../../domain/load.ts';
import type { TaskClaim } from '../../domain/task.ts';
import { MissingFileError } from '../../files/file-store.ts';
import { type ChunkTally, finishChunk, type LoadProgress } from '../../load/chunk-store.ts';
import { RejectCauses } from '../../load/rejects/causes.ts';
import { type CountedReject, insertRejects } from '../../load/rejects/store.ts';
import { readLoadSource } from '../../load/running-store.ts';
import type { HookContext } from '../../load/seam.ts';
import { LostClaim } from '../../tasks/store.ts';
import { inTaskTransaction } from '../../tasks/worker-store.ts';
import { copyPatch, planEvents, removeEvents } from './patch-store.ts';
import { planPutBack, putBackProfiles, type RefusedLine } from './put-back-store.ts';

const newline = 0x0a;

export async function applyPatch(
  context: HookContext,
  claim: TaskClaim,
  chunk: ChunkRange,
): Promise<LoadProgress> {
  const source = await readLoadSource(context, claim.subjectId);
  const { fileRef, environmentId, loadId } = source;
  if (fileRef === null) throw new MissingFileError(`the file of job ${source.jobId} has expired`);
  const bytes = await context.files.readRange(fileRef, chunk.byteStart, chunk.byteEnd);
  return inTaskTransaction(
    context.pool,
    claim,
    async (transaction) => {
      const { db } = transaction;
      const content = await copyPatch(transaction, bytes);
      const scope = { environmentId, loadId, chunkNo: claim.part };
      const kinds = { ...noOutcomesByKind };
      const refused: RefusedLine[] = [];
      for (const entity of entities) {
        const applied = await (source.dryRun ? planPutBack : putBackProfiles)(db, entity, scope, content);
        kinds[kindOfEntity[entity]] = applied.outcomes;
        refused.push(...applied.refused);
      }
      Object.assign(kinds, await (source.dryRun ? planEvents(db) : removeEvents(db, scope, content)));
      const causes = new RejectCauses(source);
      await insertRejects(transaction, source, rejectsOf(refused, chunk, bytes), (reject) =>
        causes.of(reject),
      );
      const sum = countedKinds.reduce((total, kind) => addOutcomes(total, kinds[kind]), noOutcomes);
      const tally: ChunkTally = { ...sum, kinds, hasEventTypes: true };
      const progress = await finishChunk(db, claim, tally, []);
      if (progress === null) throw new LostClaim();
      return progress;
    },
    { isAsynchronous: source.chunkCount > 1 },
  );
}

function rejectsOf(
  refused: readonly RefusedLine[],
  chunk: ChunkRange,
  bytes: Buffer,
): readonly CountedReject[] {
  if (refused.length === 0) return [];
  const ends: number[] = [];
  for (let at = bytes.indexOf(newline); at !== -1; at = bytes.indexOf(newline, at + 1)) ends.push(at);
  return refused.map(({ line, entity, names }) => {
    const start = line === 0 ? 0 : (ends[line - 1] ?? 0) + 1;
    const column = names.length === 0 ? null : names.join(', ');
    return {
      kind: kindOfEntity[entity],
      reject: {
        row: chunk.firstRow + line,
        line: chunk.firstLine + line,
        byteOffset: chunk.byteStart + start,
        column,
        code: 'changed_since',
        message: `${column ?? 'The profile'} was changed by others since, and stays as it is`,
        raw: bytes.subarray(start, ends[line]),
      },
    };
  });
}
