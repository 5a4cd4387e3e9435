/** The work of a command that waits for it is done by workers, and small loads by this process itself. */
import { chunkJob } from '../../jobs/load.ts';
import type { System } from '../context.ts';
import { kindsInTurn, queueName } from '../domain/task.ts';
import { renderJobListItem } from '../http/render.ts';
import { type Load, requireLoad } from '../load/read-store.ts';
import { findRedisFault } from '../processes/preflight.ts';
import { openOwnTasks } from '../tasks/runner.ts';
import { countLiveWorkers } from '../tasks/worker-store.ts';
import type { Invocation } from './define-command.ts';
import { CommandFailed, exitCodeOf } from './errors.ts';
import { createProgress, describeHold, followLoad } from './follow.ts';
import type { StopRequest } from './processes.ts';
import { listenForStop, type Supervisor, superviseWorkers, workerEnvironment } from './processes.ts';
import { type EnvironmentSession, type Session, withEnvironment } from './session.ts';
import { printDone } from './terminal.ts';

const checkMs = 3_000;

export interface Workers {
  /** Processes of our own, or those of a running `sluice start` or `sluice work`. */
  readonly whose: 'own' | 'running';
}

interface WorkersOptions {
  readonly entry: string;
  readonly stop: StopRequest;
  /** The most tasks at a time, and so the most processes. */
  readonly tasks?: number | undefined;
  /** The time, in milliseconds, in which this process has probably done the work itself, so that no worker is needed. */
  readonly afterMs?: number;
}

/** Does `work` while workers run; our own are stopped after it, and killed by a second Ctrl-C. */
export async function withWorkers<T>(
  session: Session,
  { stop, ...options }: WorkersOptions,
  work: (workers: Workers) => Promise<T>,
): Promise<T> {
  const workers = await provideWorkers(session, options);
  stop.onSecond = workers.kill;
  try {
    return await work(workers);
  } finally {
    await workers.stop();
  }
}

/** Makes sure that workers run: our own, or those of others, which are watched and replaced by our own if they end. */
async function provideWorkers(
  { settings, database, system, log }: Session,
  { entry, tasks = settings.config.workers, afterMs = 0 }: Omit<WorkersOptions, 'stop'>,
) {
  // Without the queue the command would wait without a word.
  const problem = await findRedisFault(settings.config);
  if (problem?.away === true) throw new CommandFailed(problem.sentence);
  let own: Supervisor | null = null;
  let isOver = false;
  const launch = (): void => {
    const processEnv = {
      ...workerEnvironment(settings.processEnv, settings.config, database.url),
      // They log as little as the command does.
      LOG_LEVEL: log.level,
      // They serve one command, and leave watching to the workers of a service.
      INBOX_DIR: '',
    };
    own = superviseWorkers({
      size: Math.max(Math.min(settings.config.workers, tasks), 1),
      entry,
      processEnv,
      args: ['--of-command'],
      log,
    });
  };
  // If this command started the server, the rows in the table are of former workers.
  let whose: Workers['whose'] =
    database.embedded !== null || (await countLiveWorkers(system.db)) === 0 ? 'own' : 'running';
  if (whose === 'own' && afterMs === 0) launch();
  const late = setTimeout(() => whose === 'own' && own === null && launch(), afterMs);
  const watch = setInterval(() => {
    if (whose === 'own') return clearInterval(watch);
    countLiveWorkers(system.db).then(
      (count) => {
        // Asked before the end, and answered after it.
        if (count > 0 || own !== null || isOver) return;
        whose = 'own';
        launch();
      },
      () => undefined,
    );
  }, checkMs);
  return {
    get whose() {
      return whose;
    },
    async stop() {
      isOver = true;
      clearTimeout(late);
      clearInterval(watch);
      await own?.stop();
    },
    kill: () => own?.kill(),
  };
}

/** So many at a time in a process; the others are left to the workers. Each takes one of its connections. */
const atATime = 2;
/** The share of the time to stop in which small loads end; the rest are given back. */
const stopShare = 0.1;

/** Returns the same system, which merges the small loads that it accepts itself, if it is their turn; it is closed with them. */
export function withSmallLoads(system: System): System {
  const ownTasks = openOwnTasks<System>(system, [chunkJob], kindsInTurn(queueName), atATime);
  return {
    ...system,
    ownTasks,
    async close() {
      await ownTasks.stop(system.config.shutdownMs * stopShare);
      await system.close();
    },
  };
}

/** Queues a load by `queue`, which returns its job. With `waits` does it here; `show` then shows its end, and may return a sentence. */
export async function queueLoad(
  invocation: Invocation,
  waits: boolean,
  queue: (session: EnvironmentSession, signal: AbortSignal) => Promise<string>,
  show: (session: EnvironmentSession, load: Load) => Promise<string | undefined> = async () => undefined,
): Promise<void> {
  const { cli, terminal, json } = invocation;
  const stop = listenForStop();
  const { signal } = stop;
  await withEnvironment(invocation, async (session) => {
    const { system, environmentId, baseUrl } = session;
    const jobId = await queue(session, signal);
    if (!waits) {
      const load = await requireLoad(system, environmentId, jobId);
      const continues =
        (await countLiveWorkers(system.db)) > 0
          ? 'the running workers do it.'
          : 'it begins as soon as workers run: `sluice start`. (With --wait it is done here and now.)';
      return printDone(invocation, renderJobListItem(load, baseUrl), `Job ${jobId} is queued; ${continues}`);
    }
    const progress = createProgress(terminal, jobId, json);
    await withWorkers(session, { entry: cli.entry, stop }, async () => {
      const load = await followLoad(system, { environmentId, jobId, signal }, progress);
      process.exitCode = exitCodeOf(load);
      const said = await show(session, load);
      const is = load.status === 'held' ? describeHold(load) : `The job is ${load.status}.`;
      printDone(invocation, renderJobListItem(load, baseUrl), said ?? is);
    });
  });
}
