import type { System } from '../src/context.ts';
import { pruneFiles } from '../src/load/prune-files.ts';
import type { JobHandlers } from '../src/queue/contract.ts';

export function pruneFilesJob(system: System): JobHandlers['prune-files'] {
  const { fileRetentionDays, jobRetentionDays } = system.config;
  return async () => {
    const pruned = await pruneFiles(system, { fileDays: fileRetentionDays, jobDays: jobRetentionDays });
    system.log.info(pruned, 'pruned');
  };
}
