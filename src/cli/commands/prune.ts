import type { Command } from 'commander';
import { type Pruned, planPrune, prune } from '../../background-jobs/prune.ts';
import type { Cli } from '../cli.ts';
import { formatCount } from '../format-numbers.ts';
import { withSession } from '../session/session.ts';

interface Flags {
  readonly dryRun: boolean;
  readonly json: boolean;
}

export function addPruneCommand(program: Command, cli: Cli): void {
  program
    .command('prune')
    .summary('remove what has outlived its retention, now')
    .description(
      'Removes what the workers remove once a day: received files after FILE_RETENTION_DAYS, files of exports after\n' +
        'EXPORT_RETENTION_DAYS, records of jobs with their rejects after JOB_RETENTION_DAYS, events after EVENT_RETENTION_DAYS\n' +
        'or what the catalogue says, and what killed processes left in the storage. A server may run meanwhile.',
    )
    .option('--dry-run', 'only say what would go', false)
    .option('--json', 'print the counts as JSON', false)
    .addHelpText('after', '\nExamples:\n  $ sluice prune --dry-run\n  $ FILE_RETENTION_DAYS=1 sluice prune')
    .action((flags: Flags, command: Command) => run(cli, command, flags));
}

async function run(cli: Cli, command: Command, { dryRun, json }: Flags): Promise<void> {
  await withSession(cli, command, async ({ system }) => {
    const counts = await (dryRun ? planPrune(system) : prune(system));
    if (json) cli.terminal.json(renderCounts(counts, dryRun));
    else cli.terminal.print(describe(counts, dryRun));
  });
}

/** For scripts. */
function renderCounts(counts: Pruned, dryRun: boolean) {
  return {
    dry_run: dryRun,
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
    // Null: a dry run does not count them.
    unfinished_files: counts.temporary,
  };
}

function describe(counts: Pruned, dryRun: boolean): string {
  const { files, jobs, exports, records, deletions, inboxFiles, notifications, runs, temporary } = counts;
  const { events, months, archived } = counts;
  const parts = [
    `${formatCount(files)} received files`,
    `the files of ${formatCount(exports)} exports`,
    `the records of ${formatCount(jobs)} loads, ${formatCount(records)} exports and ${formatCount(deletions)} deletions`,
    `what is known of ${formatCount(inboxFiles)} files of the inbox, ${formatCount(notifications)} notifications and ${formatCount(runs)} runs of schedules`,
    `${formatCount(events)} events${archived === null ? '' : ` (${formatCount(archived)} of them archived)`}, of ${formatCount(months)} months all`,
    ...(temporary === null ? [] : [`${formatCount(temporary)} unfinished files of killed processes`]),
  ];
  return `${dryRun ? 'Would remove' : 'Removed'}: ${parts.join(', ')}.`;
}
