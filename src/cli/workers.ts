import { countLiveWorkers } from '../tasks/worker-store.ts';
import { findRedisFault } from '../telemetry/health/checks.ts';
import { CommandFailed } from './errors.ts';
import { type StopRequest, type Supervisor, superviseWorkers, workerEnvironment } from './processes.ts';
import type { Session } from './session.ts';

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
