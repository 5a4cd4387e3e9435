import type { DeletionContext } from '../src/deletion/context.ts';
import { runDeletion } from '../src/deletion/run-deletion.ts';
import type { JobHandlers } from '../src/queue/contract.ts';

export function runDeletionJob(context: DeletionContext, stopping: AbortSignal): JobHandlers['run-deletion'] {
  return ({ deletionId }) => runDeletion(context, deletionId, stopping);
}
