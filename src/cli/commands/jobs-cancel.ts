import type { Command } from 'commander';
import { cancelLoad } from '../../load/cancel-load.ts';
import { requireLoad } from '../../load/inspect-load.ts';
import type { Cli } from '../cli.ts';
import { formatCount } from '../format-numbers.ts';
import { requireJobId } from '../job-id.ts';
import { printChanged } from '../print-changed.ts';
import { requireEnvironment, withSession } from '../session/session.ts';

interface Flags {
  readonly env: string;
  readonly json: boolean;
}

export function addJobsCancelCommand(jobs: Command, cli: Cli): void {
  jobs
    .command('cancel')
    .summary('stop a load that has not ended')
    .description(
      'Stops a load that has not ended. What it applied so far stays; `sluice jobs retry` goes on with the rest.',
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
    const { environmentId } = await requireEnvironment(session, flags.env);
    await cancelLoad(session.system, environmentId, jobId);
    const load = await requireLoad(session.system, environmentId, jobId);
    const { read } = load.tally;
    const sentence = `Cancelled; ${formatCount(read)} of ${formatCount(load.totalRows)} rows had been done and stay.`;
    printChanged(cli.terminal, load, session.system.config, flags.json, sentence);
  });
}
