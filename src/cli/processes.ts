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

/** SIGHUP: the terminal was closed. */
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
 * Time in which a repeated signal is ignored if npm runs this process. npm forwards a Ctrl-C of the
 * terminal, although the Ctrl-C also reaches this process directly.
 */
const echoMs = 500;

/** Listens for signals to stop. The second signal ends the process. */
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
 * True if npm has started this process. npm sets a variable. Processes that sluice starts inherit
 * this variable, but they also have an IPC channel.
 */
function isRunByNpm(): boolean {
  return process.env['npm_lifecycle_event'] !== undefined && process.connected === undefined;
}

export interface SupervisorOptions {
  readonly size: number;
  readonly entry: string;
  /**
   * Environment variables for the workers. They contain secrets, which a command line would show.
   */
  readonly processEnv: ProcessEnv;
  readonly args?: readonly string[];
  readonly log: Logger;
}

export interface Supervisor {
  readonly pids: readonly number[];
  /** Stops the workers after their current chunks. */
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
    // The path is absolute, because a worker may run in another folder.
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
/** A worker that ran longer than this is restarted without a long pause. */
const healthyMs = 30_000;

/** While workers end early, the pause before a restart doubles. */
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
      // `fork` throws if memory is lacking. Most other errors are events.
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
 * Time in which a process must stop after the end of its parent, whose embedded database ends at
 * the same time.
 */
const orphanMs = 3_000;

/** True for a child process, even after its parent has ended. */
export function isForked(): boolean {
  return process.connected !== undefined;
}

/** The end of the parent closes the IPC channel, even after kill -9. */
export function followParent(stop: StopRequest, log: Logger): void {
  if (!isForked()) return;
  const leave = (): void => {
    if (stop.signal.aborted) return;
    log.warn('the parent process is gone: stopping');
    stop.request();
    setTimeout(() => process.exit(1), orphanMs).unref();
  };
  process.once('disconnect', leave);
  // The channel may have closed while modules were loading.
  if (process.connected === false) leave();
}

/** Runs a single task in a process of its own, with `sluice work --only`. */
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

/** The child's IPC channel closes when this process ends. */
function forkOurselves(entry: string, words: readonly string[], processEnv: ProcessEnv): ChildProcess {
  return fork(entry, words, { env: { ...processEnv }, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
}

const wellEnded = 'exit code 0';

/** Resolves with the exit code, the signal, or the reason why the process did not start. */
function endOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.on('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
    child.on('error', (error) => {
      // A signal that cannot be sent is an error too. A child that did not start has no pid.
      if (child.pid === undefined) resolve(error.message);
    });
  });
}

// Data may cause an endless loop. Another thread watches the event loop and ends the process, whose
// leases then lapse. While the machine sleeps, all threads pause, so this time does not count.
const ticks = 10;

/**
 * Source code of the thread. As a file, it would have a different path in the bundle, in the build
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

/** Ends this process if its event loop makes no progress for `silentMs`. */
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
