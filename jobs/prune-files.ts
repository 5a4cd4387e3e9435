import type { System } from '../src/context.ts';
import { pruneFiles } from '../src/load/prune-files.ts';
import type { JobHandlers } from '../src/queue/contract.ts';

export function pruneFilesJob(system: System): JobHandlers['prune-files'] {
  const { fileRetentionDays, jobRetentionDays } = system.config;
  return async () => {
    const pruned = await pruneFiles(system, { fileDays: fileRetentionDays, jobDays: jobRetentionDays });
    // Nothing to prune is nothing to tell.
    system.log[pruned.files + pruned.jobs > 0 ? 'info' : 'debug'](pruned, 'pruned');
  };
}
