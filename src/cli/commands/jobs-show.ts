import type { Command } from 'commander';
import { type Job, requireJob } from '../../background-jobs/find-jobs.ts';
import { renderJob, renderJobDetail } from '../../background-jobs/render-job.ts';
import type { Cli } from '../cli.ts';
import { exitCodes } from '../exit-codes.ts';
import { requireJobId } from '../job-id.ts';
import { followJob } from '../jobs/follow-job.ts';
import { printJob } from '../jobs/print-job.ts';
import { linkBase } from '../link-base.ts';
import { requireEnvironment, withSession } from '../session/session.ts';
import { listenForStop } from '../stop-signals.ts';

interface Flags {
  readonly env: string;
  readonly watch: boolean;
  readonly json: boolean;
}

export function addJobsShowCommand(jobs: Command, cli: Cli): void {
  jobs
    .command('show')
    .summary('one job in full')
    .description(
      'Shows a load, an export or a deletion: its counts, its rejects by reason or its files, why it failed.',
    )
    .argument('<job-id>')
    .option('--watch', 'follow it until it has ended; exit code 1 if it did not complete', false)
    .option('--env <name>', 'environment', 'default')
    .option('--json', 'print the job record as JSON', false)
    .addHelpText(
      'after',
      '\nExamples:\n  $ sluice jobs show 0195… --watch\n  $ sluice jobs show 0195… --json | jq .counts',
    )
    .action((jobId: string, flags: Flags, command: Command) =>
      show(cli, command, requireJobId(jobId), flags),
    );
}

async function show(cli: Cli, command: Command, jobId: string, flags: Flags): Promise<void> {
  const { terminal } = cli;
  const stop = listenForStop();
  await withSession(cli, command, async (session) => {
    const { system } = session;
    const { environmentId } = await requireEnvironment(session, flags.env);
    const found = await requireJob(system, environmentId, jobId);
    const quiet = flags.json;
    const job = flags.watch
      ? await followJob(system, found, { terminal, environmentId, signal: stop.signal, quiet })
      : found;
    if (flags.json) terminal.json(await renderJobDetail(system, environmentId, job, linkBase(system.config)));
    else await printJob(terminal, system, environmentId, job);
    if (flags.watch) process.exitCode = exitCodeOf(job);
  });
}

function exitCodeOf(job: Job): number {
  const { status } = renderJob(job, '');
  if (status === 'completed') return exitCodes.ok;
  return status === 'failed' || status === 'cancelled' ? exitCodes.failed : exitCodes.interrupted;
}
