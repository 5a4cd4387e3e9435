import type { System } from '../src/context.ts';
import { ABANDONED_FILE_MS } from '../src/domain/limits.ts';
import { pruneExports } from '../src/export/prune-exports.ts';
import { pruneInbox } from '../src/inbox/prune-inbox.ts';
import { pruneFiles } from '../src/load/prune-files.ts';
import { pruneNotifications } from '../src/notifications/prune-notifications.ts';
import { forgetDeletions } from '../src/postgres/ledger/deletions.ts';
import { deleteRuns } from '../src/postgres/ledger/schedule-due.ts';
import type { JobHandlers } from '../src/queue/contract.ts';

export function pruneFilesJob(system: System): JobHandlers['prune-files'] {
  const { fileRetentionDays, exportRetentionDays, jobRetentionDays: jobDays } = system.config;
  return async () => {
    const loads = await pruneFiles(system, { fileDays: fileRetentionDays, jobDays });
    const exports = await pruneExports(system, { exportDays: exportRetentionDays, jobDays });
    const temporary = await system.files.sweepTemporary(ABANDONED_FILE_MS);
    const deletions = await forgetDeletions(system.db, jobDays);
    const notifications = await pruneNotifications(system, { jobDays });
    const inbox = await pruneInbox(system, jobDays);
    const runs = await deleteRuns(system.db, jobDays);
    system.log.info(
      { ...loads, ...exports, ...notifications, ...inbox, temporary, deletions, runs },
      'pruned',
    );
  };
}
