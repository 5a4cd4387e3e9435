import { type Command, Option } from 'commander';
// The one place where src/ reaches into jobs/: here is where a process becomes a worker.
import { startWorker } from '../../../jobs/worker.ts';
import { doSuspect } from '../../background-jobs/suspects.ts';
import { openSystem, type System } from '../../context.ts';
import { Interrupted } from '../../domain/errors.ts';
import { SILENT_WORKER_MS } from '../../domain/limits.ts';
import { writeExport } from '../../export/write/write-export.ts';
import { prepareDatabase } from '../../postgres/prepare.ts';
import { schedulePrune } from '../../queue/schedule-prune.ts';
import { shutDown } from '../../shutdown.ts';
import type { Cli } from '../cli.ts';
import { awaitDatabase } from '../service/await-database.ts';
import { warnOfRedis } from '../service/check-redis.ts';
import { followParent, isForked } from '../service/parent.ts';
import { readSuspect, runInProcess } from '../service/run-alone.ts';
import { warnOfStorage } from '../service/warn-of-storage.ts';
import { startWatchdog } from '../service/watchdog.ts';
import { whileAway } from '../service/while-away.ts';
import { openWorkerSchedules } from '../service/worker-schedules.ts';
import { readSettings } from '../settings.ts';
import { listenForStop, type StopRequest } from '../stop-signals.ts';

/** What a worker process is made of; the fault tests have parts of their own. */
export interface WorkerParts {
  readonly openSystem: typeof openSystem;
  readonly silentMs: number;
}

const ownParts: WorkerParts = { openSystem, silentMs: SILENT_WORKER_MS };

export function addWorkCommand(program: Command, cli: Cli, parts = ownParts): void {
  program
    .command('work')
    .summary('one worker process')
    .description(
      'Starts one worker process, which does what the HTTP server accepts. The database is DATABASE_URL, or the embedded\n' +
        'one that runs on DATA_DIR; it is waited for up to a minute, and migrated. Files must be where the server puts them.',
    )
    .addHelpText(
      'after',
      `
Examples:
  $ DATABASE_URL=postgres://… REDIS_URL=redis://… sluice work
  $ sluice work                  # one more worker beside \`sluice start\``,
    )
    .addOption(new Option('--only <task>', 'do this one task, and end').hideHelp())
    .action(({ only }: { only?: string }, command: Command) => work(cli, command, parts, only));
}

async function work(cli: Cli, command: Command, parts: WorkerParts, only?: string): Promise<void> {
  const { config, environment, serviceLog } = readSettings(cli, command);
  const log = serviceLog('work');
  startWatchdog('work', parts.silentMs);
  const schedules = await openWorkerSchedules(config, environment, log);
  // Ctrl-C in a terminal reaches the whole group; a worker that has a parent leaves the answer to it.
  const stop = listenForStop(isForked() ? { ignored: ['SIGINT', 'SIGHUP'] } : {});
  followParent(stop, log);
  const databaseUrl = await awaitDatabase(config, {
    signal: stop.signal,
    onWait: (sentence) => log.warn(`${sentence} Waiting for it.`),
  });
  const patience = { signal: stop.signal, log };
  await whileAway(patience, () => prepareDatabase(databaseUrl, config.redisUrl === null, log));
  const poolSize = config.workerPoolSize;
  const system = parts.openSystem({ config, databaseUrl, log, role: 'work', poolSize });
  if (only !== undefined) return doOnly(system, only, stop);
  // A worker that has a parent leaves it to that.
  if (!isForked()) {
    void warnOfRedis(config, log);
    void warnOfStorage(config, system.files, log);
  }
  const runAlone = runInProcess(cli.entry, environment, log);
  const worker = startWorker(system, writeExport, schedules, runAlone);
  schedulePrune(system.backend).catch((err: unknown) =>
    log.warn({ err }, 'the daily pruning could not be scheduled'),
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

/** What ends the process here ends nothing else. Told to stop, it gives the task back. */
async function doOnly(system: System, task: string, stop: StopRequest): Promise<void> {
  const stopping = new AbortController();
  void stop.requested.then(() => stopping.abort(new Interrupted('the worker stops')));
  await doSuspect(system, writeExport, readSuspect(task), {
    stopping: stopping.signal,
    hurry: stopping.signal,
  });
  await system.close();
}
