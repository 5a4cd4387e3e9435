import type { System } from '../src/context.ts';
import { pruneExports } from '../src/export/prune-exports.ts';
import { pruneFiles } from '../src/load/prune-files.ts';
import { deleteRuns } from '../src/postgres/ledger/schedule-due.ts';
import type { JobHandlers } from '../src/queue/contract.ts';

export function pruneFilesJob(system: System): JobHandlers['prune-files'] {
  const { fileRetentionDays, exportRetentionDays, jobRetentionDays: jobDays } = system.config;
  return async () => {
    const loads = await pruneFiles(system, { fileDays: fileRetentionDays, jobDays });
    const exports = await pruneExports(system, { exportDays: exportRetentionDays, jobDays });
    const runs = await deleteRuns(system.db, jobDays);
    system.log.info({ ...loads, ...exports, runs }, 'pruned');
  };
}
