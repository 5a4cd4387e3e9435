import { prune } from '../src/background-jobs/prune.ts';
import type { System } from '../src/context.ts';
import type { JobHandlers } from '../src/queue/contract.ts';

export function pruneFilesJob(system: System): JobHandlers['prune-files'] {
  return async () => {
    system.log.info(await prune(system), 'pruned');
  };
}
