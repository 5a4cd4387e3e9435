import { startWatch } from '../base/timers.ts';
import { countLiveWorkers } from '../tasks/worker-store.ts';
import { findRedisFault } from '../telemetry/health/checks.ts';
import { CommandFailed } from './errors.ts';
import { type StopRequest, type Supervisor, superviseWorkers, workerEnvironment } from './processes.ts';
import type { Session } from './session.ts';

const checkMs = 3_000;

export interface Workers {
  /**
   * `running` workers belong to `sluice start` or `sluice work`, and `own` workers belong to this
   * command.
   */
  readonly whose: 'own' | 'running';
}

interface WorkersOptions {
  readonly entry: string;
  readonly stop: StopRequest;
  /** Number of tasks. No more workers than this are started. */
  readonly tasks?: number | undefined;
  /**
   * Time to wait before workers are started, because this process may finish the work by itself.
   */
  readonly afterMs?: number;
}

/**
 * Runs `work` with workers, and then stops those that this command has started. A second Ctrl-C
 * kills them.
 */
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

/** Starts workers. If other workers are running, first waits until they have ended. */
async function provideWorkers(
  { settings, database, system, log }: Session,
  { entry, tasks = settings.config.workers, afterMs = 0 }: Omit<WorkersOptions, 'stop'>,
) {
  // With an unreachable Redis, the command would wait without a message.
  const problem = await findRedisFault(settings.config);
  if (problem?.away === true) throw new CommandFailed(problem.sentence);
  let supervisor: Supervisor | null = null;
  let isOver = false;
  const launch = (): void => {
    const processEnv = {
      ...workerEnvironment(settings.processEnv, settings.config, database.url),
      LOG_LEVEL: log.level,
      // Only the workers of a service watch INBOX_DIR.
      INBOX_DIR: '',
    };
    supervisor = superviseWorkers({
      size: Math.max(Math.min(settings.config.workers, tasks), 1),
      entry,
      processEnv,
      args: ['--of-command'],
      log,
    });
  };
  // If this command has started the database, all of its earlier workers have ended.
  let whose: Workers['whose'] =
    database.embedded !== null || (await countLiveWorkers(system.db)) === 0 ? 'own' : 'running';
  if (whose === 'own' && afterMs === 0) launch();
  const late = setTimeout(() => whose === 'own' && supervisor === null && launch(), afterMs);
  const watch = startWatch(checkMs, async () => {
    if (whose === 'own') return void watch.stop();
    const isWorking = await countLiveWorkers(system.db).then(Boolean, () => true);
    // `work` may have ended during the query.
    if (isWorking || supervisor !== null || isOver) return;
    whose = 'own';
    launch();
  });
  return {
    get whose() {
      return whose;
    },
    async stop() {
      isOver = true;
      clearTimeout(late);
      await watch.stop();
      await supervisor?.stop();
    },
    kill: () => supervisor?.kill(),
  };
}
