import type { Command } from 'commander';
import type { Load } from '../../domain/load.ts';
import { renderJobDetail } from '../../http/render-job.ts';
import { countRejects } from '../../load/inspect-load.ts';
import type { Cli } from '../cli.ts';
import { exitCodes } from '../exit-codes.ts';
import { followLoad } from '../import/follow-load.ts';
import { createProgress } from '../import/progress.ts';
import { requireJobId } from '../job-id.ts';
import { linkBase } from '../link-base.ts';
import { printLoad } from '../print-load.ts';
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
    .summary('one load in full')
    .description('Shows a load: its counts, its rejects by reason, why it failed.')
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
  const stop = listenForStop();
  await withSession(cli, command, async (session) => {
    const { system } = session;
    const { environmentId } = await requireEnvironment(session, flags.env);
    const signal = flags.watch ? stop.signal : AbortSignal.abort();
    const progress = createProgress(cli.terminal, jobId, !flags.watch || flags.json);
    const load = await followLoad(system, {
      environmentId,
      jobId,
      signal,
      onChange: progress.loading,
    }).finally(() => progress.end());
    const byCode = await countRejects(system, environmentId, jobId);
    if (flags.json) cli.terminal.json(renderJobDetail(load, byCode, linkBase(system.config)));
    else printLoad(cli.terminal, load, byCode);
    if (flags.watch) process.exitCode = exitCodeOf(load);
  });
}

function exitCodeOf({ status }: Load): number {
  if (status === 'completed') return exitCodes.ok;
  return status === 'failed' || status === 'cancelled' ? exitCodes.failed : exitCodes.interrupted;
}
