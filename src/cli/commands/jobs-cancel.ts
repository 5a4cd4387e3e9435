import type { Command } from 'commander';
import { cancelFoundJob } from '../../background-jobs/cancel-job.ts';
import { type Job, requireJob } from '../../background-jobs/find-jobs.ts';
import { renderJobListItem } from '../../background-jobs/render-job.ts';
import type { Cli } from '../cli.ts';
import { formatCount } from '../format-numbers.ts';
import { requireJobId } from '../job-id.ts';
import { linkBase } from '../link-base.ts';
import { requireEnvironment, withSession } from '../session/session.ts';

interface Flags {
  readonly env: string;
  readonly json: boolean;
}

export function addJobsCancelCommand(jobs: Command, cli: Cli): void {
  jobs
    .command('cancel')
    .summary('stop a load or an export that has not ended')
    .description(
      'Stops a load or an export that has not ended. What a load applied so far stays, and `sluice jobs retry` goes on with\n' +
        'the rest; of an export nothing stays. A deletion is not cancelled.',
    )
    .argument('<job-id>')
    .option('--env <name>', 'environment', 'default')
    .option('--json', 'print the job record as JSON', false)
    .addHelpText('after', '\nExamples:\n  $ sluice jobs cancel 0195…')
    .action((jobId: string, flags: Flags, command: Command) =>
      cancel(cli, command, requireJobId(jobId), flags),
    );
}

async function cancel(cli: Cli, command: Command, jobId: string, flags: Flags): Promise<void> {
  await withSession(cli, command, async (session) => {
    const { system } = session;
    const { environmentId } = await requireEnvironment(session, flags.env);
    const found = await requireJob(system, environmentId, jobId);
    const job = await cancelFoundJob(system, environmentId, found);
    if (flags.json) cli.terminal.json(renderJobListItem(job, linkBase(system.config)));
    else cli.terminal.print(describe(job));
  });
}

function describe(job: Job): string {
  if (job.kind !== 'load') return 'Cancelled; nothing of it stays.';
  const { tally, totalRows } = job.load;
  return `Cancelled; ${formatCount(tally.read)} of ${formatCount(totalRows)} rows had been done and stay.`;
}
