// Turns a process into a worker. The handlers of tasks are in `jobs/`, next to `src/`.
import { openJobs } from '../../jobs/kinds.ts';
import { startWorker } from '../../jobs/worker.ts';
import { Interrupted } from '../base/errors.ts';
import { shutDown } from '../base/timers.ts';
import { defineCommand, flag, hidden, type Invocation, text } from '../cli/define-command.ts';
import {
  followParent,
  isForked,
  listenForStop,
  runInProcess,
  type StopRequest,
  startWatchdog,
} from '../cli/processes.ts';
import { type AddCommand, readSettings } from '../cli/settings.ts';
import type { System } from '../context.ts';
import { prepareDatabase } from '../queue/provide-database.ts';
import { kindOf, runTaskById } from '../tasks/run-task.ts';
import { queuePeriodic } from '../tasks/task-kind.ts';
import { openSandboxes } from './open-system.ts';
import { awaitDatabase, retryWhileAway, warnOfRedis, warnOfStorage } from './preflight.ts';

/**
 * A worker is ended if its event loop makes no progress for this time. The time is longer than a
 * lease, so other workers can already own its tasks.
 */
const SILENT_WORKER_MS = 20_000;

/** Fault tests use another value for `silentMs`. */
export function workCommand(silentMs: number): AddCommand {
  return defineCommand({
    name: 'work',
    summary: 'one worker process',
    description:
      'Starts one worker process, which does what the HTTP server accepts. The database is DATABASE_URL, or the embedded\n' +
      'one that runs on DATA_DIR. Waits for it up to a minute, and migrates it. Needs the files where the server keeps them.',
    options: {
      only: hidden(text('--only <task>', 'do this one task, and end')),
      ofCommand: hidden(flag('--of-command', 'leave what is for workers of a service to those')),
    },
    examples: [
      'DATABASE_URL=postgres://… REDIS_URL=redis://… sluice work',
      'sluice work                  # one more worker beside `sluice start`',
    ],
    run: (invocation) => runWorker(invocation, silentMs, invocation.flags),
  });
}

export const work = workCommand(SILENT_WORKER_MS);

async function runWorker(
  { cli, command }: Invocation,
  silentMs: number,
  { only, ofCommand }: { readonly only: string | undefined; readonly ofCommand: boolean },
): Promise<void> {
  const settings = readSettings(cli, command);
  const { config, processEnv } = settings;
  const log = settings.serviceLog('work');
  startWatchdog('work', silentMs);
  // In a terminal, Ctrl-C reaches the whole process group. A parent stops its workers itself.
  const stop = listenForStop(isForked() ? ['SIGINT', 'SIGHUP'] : []);
  followParent(stop, log);
  const waiting = { signal: stop.signal, log };
  const databaseUrl = await awaitDatabase(config, waiting);
  await retryWhileAway(waiting, () => prepareDatabase(databaseUrl, config.redisUrl === null, log));
  const poolSize = config.workerPoolSize;
  const sandboxes = openSandboxes(log);
  const system = await cli.openSystem({ config, databaseUrl, log, role: 'work', poolSize, sandboxes });
  if (only !== undefined) return doOnly(system, only, stop);
  // A child process does not give these warnings, because its parent gives them.
  if (!isForked()) {
    void warnOfRedis(config, log);
    void warnOfStorage(config, system.files, log);
  }
  const worker = startWorker(system, {
    process: { variables: processEnv, isOfService: !ofCommand },
    runAlone: runInProcess(cli.entry, processEnv, log),
  });
  queuePeriodic(system, 'prune').catch((err: unknown) =>
    log.warn({ err }, 'the daily pruning could not be queued'),
  );
  log.debug('worker is ready');
  const reason = await stop.requested;
  log.info({ reason }, 'stopping');
  const { shutdownMs } = config;
  await shutDown(
    [
      { name: 'worker', deadlineMs: shutdownMs * 0.8, run: () => worker.stop() },
      { name: 'system', deadlineMs: shutdownMs * 0.2, run: () => system.close() },
    ],
    shutdownMs,
    log,
  );
}

/** Runs a single task, such as `chunk:17`, alone, so that its crash does not affect others. */
async function doOnly(system: System, task: string, stop: StopRequest): Promise<void> {
  const stopping = new AbortController();
  void stop.requested.then(() => stopping.abort(new Interrupted('the worker stops')));
  const [name = '', taskId] = task.split(':');
  const signals = { stopping: stopping.signal, deadline: stopping.signal };
  const jobs = openJobs(system);
  await runTaskById(system, kindOf(jobs.kinds, name), Number(taskId), signals);
  jobs.close();
  await system.close();
}
