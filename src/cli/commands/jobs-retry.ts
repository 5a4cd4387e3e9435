import type { Command } from 'commander';
import { requireRetryable } from '../../background-jobs/require-retryable.ts';
import { requireLoad } from '../../load/inspect-load.ts';
import { retryLoad } from '../../load/retry-load.ts';
import type { Cli } from '../cli.ts';
import { exitCodes } from '../exit-codes.ts';
import { followLoad } from '../import/follow-load.ts';
import { createProgress } from '../import/progress.ts';
import { requireJobId } from '../job-id.ts';
import { printChanged } from '../print-changed.ts';
import { requireEnvironment, type Session, withSession } from '../session/session.ts';
import { countLiveWorkers, type Hands, provideWorkers } from '../session/workers.ts';
import { listenForStop } from '../stop-signals.ts';

interface Flags {
  readonly env: string;
  readonly wait: boolean;
  readonly json: boolean;
}

export function addJobsRetryCommand(jobs: Command, cli: Cli): void {
  jobs
    .command('retry')
    .summary('go on with a load that failed or was cancelled')
    .description('Queues a failed or cancelled load again. It goes on with the chunks that are left.')
    .argument('<job-id>')
    .option('--wait', 'do it now, and follow it to its end, without needing a running server', false)
    .option('--env <name>', 'environment', 'default')
    .option('--json', 'print the job record as JSON', false)
    .addHelpText('after', '\nExamples:\n  $ sluice jobs retry 0195… --wait')
    .action((jobId: string, flags: Flags, command: Command) =>
      retry(cli, command, requireJobId(jobId), flags),
    );
}

async function retry(cli: Cli, command: Command, jobId: string, flags: Flags): Promise<void> {
  let hands: Hands | null = null;
  const stop = listenForStop({ onSecond: () => hands?.kill() });
  await withSession(cli, command, async (session) => {
    const { system } = session;
    const { environmentId } = await requireEnvironment(session, flags.env);
    await requireRetryable(system, environmentId, jobId);
    await retryLoad(system, environmentId, jobId);
    if (!flags.wait) {
      const load = await requireLoad(system, environmentId, jobId);
      return printChanged(cli.terminal, load, system.config, flags.json, await whoGoesOn(session));
    }
    const progress = createProgress(cli.terminal, jobId, flags.json);
    try {
      hands = await provideWorkers(session, cli.entry);
      const onChange = progress.loading;
      const load = await followLoad(system, { environmentId, jobId, signal: stop.signal, onChange });
      progress.end();
      printChanged(cli.terminal, load, system.config, flags.json, `The job is ${load.status}.`);
      process.exitCode = load.status === 'completed' ? exitCodes.ok : exitCodes.failed;
    } finally {
      progress.end();
      await hands?.stop();
    }
  });
}

async function whoGoesOn({ system }: Session): Promise<string> {
  if ((await countLiveWorkers(system)) > 0) return 'Queued again; the running workers go on with it.';
  return 'Queued again; it goes on as soon as workers run: `sluice start`. (With --wait it is done here and now.)';
}
