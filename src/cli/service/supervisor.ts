/** The supervisor of `sluice start`, and of commands that need workers: it keeps worker processes running. */
import { type ChildProcess, fork } from 'node:child_process';
import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import { overrideProcessEnv, type ProcessEnv } from '../settings.ts';

export interface SupervisorOptions {
  /** The number of worker processes. */
  readonly size: number;
  /** The script to run, with `work`. */
  readonly entry: string;
  /** Their environment variables, the only way to pass secrets, since everybody can read a command line. */
  readonly processEnv: ProcessEnv;
  readonly log: Logger;
}

/** The worker processes of a service. One that ends is started again. */
export interface Supervisor {
  readonly pids: readonly number[];
  /** They finish the chunks under way. Resolves when all are gone. */
  stop(): Promise<void>;
  /** For when they do not. */
  kill(): void;
}

export function superviseWorkers(options: SupervisorOptions): Supervisor {
  const places = Array.from({ length: options.size }, (_, index) =>
    keepRunning(`worker ${index + 1}`, options),
  );
  return {
    get pids() {
      return places.flatMap((place) => place.pid ?? []);
    },
    async stop() {
      await Promise.all(places.map((place) => place.stop()));
    },
    kill() {
      for (const place of places) place.kill();
    },
  };
}

/** Returns a worker's environment variables: our own configuration, on the provided database. */
export function workerEnvironment(processEnv: ProcessEnv, config: Config, databaseUrl: string): ProcessEnv {
  return overrideProcessEnv(processEnv, {
    DATABASE_URL: databaseUrl,
    // Absolute now, whatever folder the worker starts in.
    DATA_DIR: config.dataDir,
    STORAGE_URL: config.storage.kind === 's3' ? config.storage.url : config.storage.directory,
    INBOX_DIR: config.inboxDir ?? '',
    SCHEDULES_FILE: config.schedulesFile ?? '',
  });
}

/** The place of a worker process and its successors. */
interface Place {
  readonly pid: number | undefined;
  /** SIGTERM; resolves when it is gone. */
  stop(): Promise<void>;
  kill(): void;
}

const shortestPauseMs = 100;
const longestPauseMs = 15_000;
/** A worker that lived this long was well: what ended it is no reason to wait before the next. */
const healthyMs = 30_000;

/**
 * Keeps a worker process running: one that ends is started again, after a pause that doubles while they end early.
 * The IPC channel is how a worker notices that we are gone, however we went.
 */
function keepRunning(name: string, { entry, processEnv, log }: SupervisorOptions): Place {
  let child: ChildProcess | undefined;
  let ended: Promise<void> = Promise.resolve();
  let pause: NodeJS.Timeout | undefined;
  let pauseMs = shortestPauseMs;
  let stopping = false;

  const start = (): void => {
    const startedAt = performance.now();
    let worker: ChildProcess;
    try {
      worker = fork(entry, ['work'], {
        env: { ...processEnv },
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      });
    } catch (error) {
      // A lack of memory is thrown here; most other errors are events.
      again(error instanceof Error ? error.message : String(error), 0);
      return;
    }
    child = worker;
    log.debug({ worker: name, worker_pid: worker.pid }, 'worker started');
    ended = new Promise((resolve) => {
      const onEnd = (ending: string): void => {
        resolve();
        if (child !== worker) return;
        child = undefined;
        if (!stopping) again(ending, performance.now() - startedAt);
      };
      worker.on('exit', (code, signal) => onEnd(signal ?? `exit code ${code}`));
      worker.on('error', (error) => {
        // Also reported when a signal could not be sent: only a process that never was has ended by it.
        if (worker.pid === undefined) onEnd(error.message);
      });
    });
  };

  const again = (ending: string, livedMs: number): void => {
    pauseMs = livedMs > healthyMs ? shortestPauseMs : pauseMs;
    log.warn({ worker: name, ending, restart_in_ms: pauseMs }, 'a worker ended; it is started again');
    pause = setTimeout(start, pauseMs);
    pauseMs = Math.min(pauseMs * 2, longestPauseMs);
  };

  start();
  return {
    get pid() {
      return child?.pid;
    },
    async stop() {
      stopping = true;
      clearTimeout(pause);
      child?.kill('SIGTERM');
      await ended;
    },
    kill() {
      stopping = true;
      clearTimeout(pause);
      child?.kill('SIGKILL');
    },
  };
}
