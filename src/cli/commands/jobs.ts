import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { addJobsCancelCommand } from './jobs-cancel.ts';
import { addJobsListCommand } from './jobs-list.ts';
import { addJobsRejectsCommand } from './jobs-rejects.ts';
import { addJobsRetryCommand } from './jobs-retry.ts';
import { addJobsShowCommand } from './jobs-show.ts';

export function addJobsCommand(program: Command, cli: Cli): void {
  const jobs = program
    .command('jobs')
    .summary('look at loads, exports and deletions; cancel, retry')
    .description(
      'Looks at the jobs of an environment, loads, exports and deletions, and acts on them. A server need not run.',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  $ sluice jobs list --status failed\n  $ sluice jobs show 0195… --watch',
    );
  addJobsListCommand(jobs, cli);
  addJobsShowCommand(jobs, cli);
  addJobsCancelCommand(jobs, cli);
  addJobsRetryCommand(jobs, cli);
  addJobsRejectsCommand(jobs, cli);
}
