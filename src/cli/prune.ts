import { type Pruned, prune as pruneAll } from '../background-jobs/prune.ts';
import { defineCommand } from './define-command.ts';
import { exitCodes } from './errors.ts';
import { printRecord } from './terminal.ts';

export const prune = defineCommand({
  name: 'prune',
  summary: 'remove what has outlived its retention, now',
  description:
    'Removes what the workers remove once a day: received files after FILE_RETENTION_DAYS, files of exports after\n' +
    'EXPORT_RETENTION_DAYS, records of jobs with their rejects after JOB_RETENTION_DAYS, events after EVENT_RETENTION_DAYS\n' +
    'or what the definitions say, and what killed processes left in the storage. A server may run meanwhile.',
  json: 'print the counts as JSON',
  details: 'Exit code: 1 if events past their retention could not be archived or removed.',
  examples: ['sluice prune', 'FILE_RETENTION_DAYS=1 sluice prune'],
  inSession: async (call) => {
    const { system, json, terminal } = call;
    const counts = await pruneAll(system);
    if (!json) terminal.print('Removed:');
    printRecord(call, recordOf(counts));
    if (counts.problem === null) return;
    terminal.inform(`Events that outlived their retention could not be removed: ${counts.problem}`);
    process.exitCode = exitCodes.failed;
  },
});

/** The names of the API. */
function recordOf(counts: Pruned): object {
  return {
    received_files: counts.files,
    files_of_exports: counts.exports,
    loads: counts.jobs,
    exports: counts.records,
    deletions: counts.deletions,
    inbox_files: counts.inboxFiles,
    notifications: counts.notifications,
    schedule_runs: counts.runs,
    events: counts.events,
    months_of_events: counts.months,
    archived_events: counts.archived,
    unfinished_files: counts.temporary,
    problem: counts.problem,
  };
}
