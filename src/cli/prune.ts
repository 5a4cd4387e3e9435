import { type Pruned, prune as pruneAll } from '../background-jobs/prune.ts';
import { formatCount, plural } from '../domain/wording.ts';
import { defineCommand } from './define-command.ts';
import { exitCodes } from './errors.ts';

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
  inSession: async ({ system, json, terminal }) => {
    const counts = await pruneAll(system);
    if (json) terminal.json(render(counts));
    else terminal.print(describe(counts));
    if (counts.problem === null) return;
    terminal.inform(`Events that outlived their retention could not be removed: ${counts.problem}`);
    process.exitCode = exitCodes.failed;
  },
});

/** For scripts. */
function render(counts: Pruned) {
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

function describe(counts: Pruned): string {
  const { files, jobs, exports, records, deletions, inboxFiles, notifications, runs, temporary } = counts;
  const { events, months, archived } = counts;
  const parts = [
    `${plural(files, 'received file')}`,
    `the files of ${plural(exports, 'export')}`,
    `the records of ${plural(jobs, 'load')}, ${plural(records, 'export')} and ${plural(deletions, 'deletion')}`,
    `what is known of ${plural(inboxFiles, 'file')} of the inbox, ${plural(notifications, 'notification')} and ${plural(runs, 'run')} of schedules`,
    `${plural(events, 'event')} (${formatCount(archived)} of them archived), of ${plural(months, 'month')} all`,
    `${formatCount(temporary)} unfinished files of killed processes`,
  ];
  return `Removed: ${parts.join(', ')}.`;
}
