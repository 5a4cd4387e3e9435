import type { System } from '../src/context.ts';
import { type TaskKindName, taskQueues } from '../src/domain/task.ts';
import type { TaskKind } from '../src/tasks/task-kind.ts';
import { chunkJob } from './chunk.ts';
import { deletionJob } from './deletion.ts';
import { exportJob } from './export.ts';
import { finishJob } from './finish.ts';
import { pruneJob } from './prune.ts';

/** Every kind of background work there is. */
const byName: Readonly<Record<TaskKindName, TaskKind<System>>> = {
  chunk: chunkJob,
  finish: finishJob,
  deletion: deletionJob,
  prune: pruneJob,
  export: exportJob,
};

export const jobKinds: readonly TaskKind<System>[] = Object.values(byName);

/** Those of which a queue tells. */
export function kindsOf(queue: string): readonly TaskKind<System>[] {
  return jobKinds.filter(({ name }) => taskQueues[name] === queue);
}
