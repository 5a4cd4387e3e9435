import { type ChildProcess, fork } from 'node:child_process';
import type { Logger } from 'pino';
import type { Environment } from '../environment.ts';

export interface MemberOptions {
  readonly name: string;
  readonly entry: string;
  readonly environment: Environment;
  readonly log: Logger;
}

/** One place in the fleet: a worker process, and after it the next one. */
export interface Member {
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
export function startMember({ name, entry, environment, log }: MemberOptions): Member {
  let child: ChildProcess | undefined;
  let ended: Promise<void> = Promise.resolve();
  let pause: NodeJS.Timeout | undefined;
  let pauseMs = shortestPauseMs;
  let stopping = false;

  const start = (): void => {
    const startedAt = performance.now();
    const worker = fork(entry, ['work'], {
      env: { ...environment },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
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
