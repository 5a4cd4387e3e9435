import type { DeletionContext } from '../deletion/context.ts';
import { runDeletion } from '../deletion/run-deletion.ts';
import type { LoadContext } from '../load/context.ts';
import { finishLoad } from '../load/finish-load.ts';
import { processNextChunk } from '../load/process-chunk.ts';
import type { Hurry } from '../load/until-hurry.ts';
import { findLaneTasks, type LaneTask } from '../postgres/ledger/next-tasks.ts';
import type { Turns } from '../turns.ts';

/** When a worker is to stop: a deletion at once, a chunk or a finish when there is no time left. */
export interface StopSignals {
  readonly stopping: AbortSignal;
  readonly hurry: Hurry;
}

/** Tasks that are looked at: as many workers may take the first ones at the same moment. */
const candidates = 16;

/** Does what is next in the lanes, a chunk, a finish or a deletion; nothing, if nothing is due. */
export async function doNextTask(
  context: LoadContext & DeletionContext,
  turns: Turns,
  signals: StopSignals,
): Promise<void> {
  for (const task of await findLaneTasks(context.db, turns.served, candidates)) {
    turns.took(task.environmentId);
    if (await doTask(context, task, signals)) return;
  }
}

/** False: another worker has it. */
function doTask(
  context: LoadContext & DeletionContext,
  { kind, id }: LaneTask,
  { stopping, hurry }: StopSignals,
): Promise<boolean> {
  switch (kind) {
    case 'chunk':
      return processNextChunk(context, id, hurry);
    case 'finish':
      return finishLoad(context, id, hurry);
    case 'deletion':
      return runDeletion(context, id, stopping);
  }
}
