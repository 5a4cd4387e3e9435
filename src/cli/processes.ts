/** Stop signals, the supervisor of workers, and the child processes that a worker starts. */

import { type ChildProcess, fork } from 'node:child_process';
import { constants } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { Logger } from 'pino';
import type { Config } from '../base/config.ts';
import { messageOf } from '../base/errors.ts';
import { growing } from '../base/retry.ts';
import { startWatch } from '../base/timers.ts';
import type { RunAlone } from '../tasks/reconcile.ts';
import { overrideProcessEnv, type ProcessEnv } from './settings.ts';

/** SIGHUP means that the terminal was closed. */
const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
type StopSignal = (typeof stopSignals)[number];

export interface StopRequest {
  readonly signal: AbortSignal;
  readonly requested: Promise<StopSignal>;
  request(): void;
  /** Called at the second signal, before the process ends. */
  onSecond: (() => void) | null;
}

/**
 * Maximum milliseconds until npm forwards a Ctrl-C that the terminal has sent to both npm and this
 * process.
 */
const echoMs = 500;

/** Requests a graceful stop at the first signal, and ends the process at the second. */
export function listenForStop(ignored: readonly StopSignal[] = []): StopRequest {
  const controller = new AbortController();
  let resolve: (signal: StopSignal) => void = () => undefined;
  const requested = new Promise<StopSignal>((resolved) => {
    resolve = resolved;
  });
  const stop = (name: StopSignal): void => {
    controller.abort();
    resolve(name);
  };
  const request: StopRequest = {
    signal: controller.signal,
    requested,
    request: () => stop('SIGTERM'),
    onSecond: null,
  };
  let first: { readonly name: StopSignal; readonly at: number } | null = null;
  for (const name of stopSignals) {
    process.on(name, () => {
      if (ignored.includes(name)) return;
      const isEcho = isRunByNpm() && first?.name === name && performance.now() - first.at < echoMs;
      if (isEcho) return;
      if (controller.signal.aborted) {
        request.onSecond?.();
        process.exit(128 + constants.signals[name]);
      }
      first = { name, at: performance.now() };
      stop(name);
    });
  }
  return request;
}

/**
 * Returns true if npm started this process. The environment variable alone is not sufficient,
 * because processes started by sluice inherit it. Such a process also has an IPC channel to its
 * parent.
 */
function isRunByNpm(): boolean {
  return process.env['npm_lifecycle_event'] !== undefined && process.connected === undefined;
}

export interface SupervisorOptions {
  readonly size: number;
  readonly entry: string;
  /**
   * Environment variables of the workers. They contain secrets, which would be visible on a command
   * line.
   */
  readonly processEnv: ProcessEnv;
  readonly args?: readonly string[];
  readonly log: Logger;
}

export interface Supervisor {
  readonly pids: readonly number[];
  /** Stops the workers after their current chunks. Resolves when all processes have ended. */
  stop(): Promise<void>;
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

export function workerEnvironment(processEnv: ProcessEnv, config: Config, databaseUrl: string): ProcessEnv {
  return overrideProcessEnv(processEnv, {
    DATABASE_URL: databaseUrl,
    // Paths are absolute, because a worker may run in another folder.
    DATA_DIR: config.dataDir,
    STORAGE_URL: config.storage.kind === 's3' ? config.storage.url : config.storage.directory,
    INBOX_DIR: config.inboxDir ?? '',
    SOURCE_COMMANDS: config.sourceCommands ?? '',
  });
}

interface Place {
  readonly pid: number | undefined;
  stop(): Promise<void>;
  kill(): void;
}

const pauseMs = growing(100, 15_000);
/**
 * Age from which a worker counts as healthy. A healthy worker that ends is restarted without a
 * pause.
 */
const healthyMs = 30_000;

/**
 * Restarts a worker each time it ends. As long as workers end early, the pause before a restart
 * doubles.
 */
function keepRunning(name: string, { entry, processEnv, args = [], log }: SupervisorOptions): Place {
  let child: ChildProcess | undefined;
  let ended: Promise<void> = Promise.resolve();
  let pause: NodeJS.Timeout | undefined;
  let failures = 0;
  let isStopping = false;

  const start = (): void => {
    const startedAt = performance.now();
    let worker: ChildProcess;
    try {
      worker = forkOurselves(entry, ['work', ...args], processEnv);
    } catch (error) {
      // If memory is lacking, `fork` throws. Most other errors are reported as events.
      again(messageOf(error), 0);
      return;
    }
    child = worker;
    log.debug({ worker: name, worker_pid: worker.pid }, 'worker started');
    ended = endOf(worker).then((ending) => {
      if (child !== worker) return;
      child = undefined;
      if (!isStopping) again(ending, performance.now() - startedAt);
    });
  };

  const again = (ending: string, livedMs: number): void => {
    failures = livedMs > healthyMs ? 1 : failures + 1;
    const restart_in_ms = pauseMs(failures);
    log.warn({ worker: name, ending, restart_in_ms }, 'a worker ended; it is started again');
    pause = setTimeout(start, restart_in_ms);
  };

  start();
  return {
    get pid() {
      return child?.pid;
    },
    async stop() {
      isStopping = true;
      clearTimeout(pause);
      child?.kill('SIGTERM');
      await ended;
    },
    kill() {
      isStopping = true;
      clearTimeout(pause);
      child?.kill('SIGKILL');
    },
  };
}

/**
 * Maximum milliseconds in which a worker stops after its parent has ended. The parent's embedded
 * database ends with the parent.
 */
const orphanMs = 3_000;

/** Returns true for a child process, even after its parent has ended. */
export function isForked(): boolean {
  return process.connected !== undefined;
}

/**
 * Stops this process when its parent ends. The end of the parent closes the IPC channel, even after
 * kill -9.
 */
export function followParent(stop: StopRequest, log: Logger): void {
  if (!isForked()) return;
  const leave = (): void => {
    if (stop.signal.aborted) return;
    log.warn('the parent process is gone: stopping');
    stop.request();
    setTimeout(() => process.exit(1), orphanMs).unref();
  };
  process.once('disconnect', leave);
  // The channel may already have closed while modules were loading.
  if (process.connected === false) leave();
}

/** Returns a function that runs a single task in a separate process, with `sluice work --only`. */
export function runInProcess(entry: string, processEnv: ProcessEnv, log: Logger): RunAlone {
  return async (suspect, { stopping, deadline }) => {
    log.warn({ task: suspect }, 'a task that lost its worker before is done in a process of its own');
    const child = forkOurselves(entry, ['work', '--only', `${suspect.kind}:${suspect.taskId}`], processEnv);
    const stop = (): void => void child.kill('SIGTERM');
    const kill = (): void => void child.kill('SIGKILL');
    stopping.addEventListener('abort', stop);
    deadline.addEventListener('abort', kill);
    const ending = await endOf(child);
    stopping.removeEventListener('abort', stop);
    deadline.removeEventListener('abort', kill);
    if (ending !== wellEnded)
      log.warn({ task: suspect, ending }, 'the process of the task ended before it did');
  };
}

/** Starts a child process, whose IPC channel closes when this process ends. */
function forkOurselves(entry: string, words: readonly string[], processEnv: ProcessEnv): ChildProcess {
  return fork(entry, words, { env: { ...processEnv }, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
}

const wellEnded = 'exit code 0';

/** Resolves with the exit code, the signal, or the reason why the process did not start. */
function endOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.on('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
    child.on('error', (error) => {
      // An error event is also emitted if a signal cannot be sent. If the child did not start, it
      // has no pid.
      if (child.pid === undefined) resolve(error.message);
    });
  });
}

// Data may cause an endless loop, which signals and deadlines in the same thread cannot interrupt.
// Another thread watches the event loop and ends the process, whose leases then lapse. All threads
// pause together, so a paused process or a sleeping machine does not count as a loop.
const ticks = 20;

/**
 * The thread's source is a string, because its file would be different in the bundle, in the build
 * and with tsx.
 */
const thread = `
const { workerData: { beats, tickMs, ticks, name, message } } = require('node:worker_threads');
const { write } = require('node:fs');
let seen = -1;
let silent = 0;
setInterval(() => {
  const now = Atomics.load(beats, 0);
  silent = now === seen ? silent + 1 : 0;
  seen = now;
  if (silent !== ticks) return;
  const end = () => process.kill(process.pid, 'SIGKILL');
  // Nobody may be reading.
  setTimeout(end, 1000);
  const line = { level: 60, time: new Date().toISOString(), name, pid: process.pid, msg: message };
  write(2, JSON.stringify(line) + '\\n', end);
}, tickMs);
`;

/**
 * Ends this process if its event loop makes no progress for `silentMs`. The watchdog does not keep
 * the process alive.
 */
export function startWatchdog(name: string, silentMs: number): void {
  const beats = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const tickMs = silentMs / ticks;
  const message = `the event loop gave no sign for ${silentMs / 1000} s: this process is ended, and what it did is taken over`;
  const watcher = new Worker(thread, {
    eval: true,
    workerData: { beats, tickMs, ticks, name, message },
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4 },
    execArgv: [],
  });
  watcher.unref();
  startWatch(tickMs / 2, () => void Atomics.add(beats, 0, 1));
}
