/*
 * Undo: a load whose file is the reverse patch of other loads. `write-patch.ts` writes the file
 * when the undo starts, and `apply-patch.ts` applies the file chunk by chunk. Profiles are then as
 * if the loads had never run, except for later changes.
 */
import type { Capability } from '../../capability.ts';
import type { DueTask } from '../../domain/task.ts';
import type { StopContext } from '../../load/seam.ts';
import { renderUndo, undoesField, undoField, undoneByField } from './api.ts';
import { applyPatch } from './apply-patch.ts';
import {
  isToBeUndone,
  isUndoPossible,
  latestUndo,
  markUndone,
  type UndoFacts,
  undoFacts,
  undoneByJob,
  undoneJobs,
} from './store.ts';
import { writePatch } from './write-patch.ts';

const isUndo = ({ type }: { readonly type: string }): boolean => type === 'undo';

export const undo: Capability = {
  name: 'undo',
  loads: {
    fields: [
      {
        name: 'undoes',
        schema: undoesField,
        absent: [],
        isOf: isUndo,
        select: undoneJobs,
        render: (_, jobs) => jobs ?? [],
      },
      {
        name: 'undone_by',
        schema: undoneByField,
        absent: null,
        isOf: ({ isTakenBack }) => isTakenBack,
        select: undoneByJob,
        render: (_, job) => job,
      },
      {
        name: 'undo',
        schema: undoField,
        absent: null,
        isOf: isUndo,
        select: undoFacts,
        render: ({ tally }, facts) => renderUndo(tally, facts as UndoFacts),
      },
    ],
    kind: {
      type: 'undo',
      takesBack: isToBeUndone,
      writeFile: writePatch,
      begins: markUndone,
      chunk: applyPatch,
    },
  },
  routes: async () => ({ jobs: (await import('./http.ts')).undoRoutes }),
  commands: { jobs: async () => (await import('./cli.ts')).undoCommand },
};

/* The functions below are for capabilities that undo loads. */

export async function undoStoppedLoad(context: StopContext, loadId: number): Promise<readonly DueTask[]> {
  const { undoStopped } = await import('./accept.ts');
  return undoStopped(context, loadId);
}

export const canUndo = isUndoPossible;
export const lastUndo = latestUndo;
export type { LatestUndo } from './store.ts';
