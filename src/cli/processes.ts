/** The processes of a service: what stops them, the supervisor that keeps workers running, a worker's parent and children. */

import { type ChildProcess, fork } from 'node:child_process';
import { constants } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { Logger } from 'pino';
import type { Config } from '../base/config.ts';
import { messageOf } from '../base/errors.ts';
import type { RunAlone } from '../tasks/reconcile.ts';
import { overrideProcessEnv, type ProcessEnv } from './settings.ts';

/** SIGHUP too: it is what a terminal that is closed sends. */
const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
type StopSignal = (typeof stopSignals)[number];

export interface StopRequest {
  readonly signal: AbortSignal;
  readonly requested: Promise<StopSignal>;
  request(): void;
  /** Called by the second signal, just before the process ends. */
  onSecond: (() => void) | null;
}

/** npm passes a Ctrl-C on that has reached us already, since the terminal sends it to the whole group. */
const echoMs = 500;

/** The first signal asks for a graceful stop, the second ends the process at once. Signals in `ignored` do nothing. */
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
      const echoed = isRunByNpm() && first?.name === name && performance.now() - first.at < echoMs;
      if (echoed) return;
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

/** By npm itself, not by a process of ours that npm runs: that one has a channel to us. */
function isRunByNpm(): boolean {
  return process.env['npm_lifecycle_event'] !== undefined && process.connected === undefined;
}

/** The supervisor of `sluice start`, and of commands that need workers: it keeps worker processes running. */

export interface SupervisorOptions {
  readonly size: number;
  readonly entry: string;
  /** Their environment variables, the only way to pass secrets, since everybody can read a command line. */
  readonly processEnv: ProcessEnv;
  /** Further words for `sluice work`. */
  readonly args?: readonly string[];
  readonly log: Logger;
}

/** The worker processes of a service. One that ends is started again. */
export interface Supervisor {
  readonly pids: readonly number[];
  /** They finish the chunks under way. Resolves when all are gone. */
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

/** Returns a worker's environment variables: our own configuration, on the provided database. */
export function workerEnvironment(processEnv: ProcessEnv, config: Config, databaseUrl: string): ProcessEnv {
  return overrideProcessEnv(processEnv, {
    DATABASE_URL: databaseUrl,
    // Absolute now, whatever folder the worker starts in.
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

const shortestPauseMs = 100;
const longestPauseMs = 15_000;
/** A worker that lived this long was well: what ended it is no reason to wait before the next. */
const healthyMs = 30_000;

/** Keeps a worker process running: one that ends is started again, after a pause that doubles while they end early. */
function keepRunning(name: string, { entry, processEnv, args = [], log }: SupervisorOptions): Place {
  let child: ChildProcess | undefined;
  let ended: Promise<void> = Promise.resolve();
  let pause: NodeJS.Timeout | undefined;
  let pauseMs = shortestPauseMs;
  let stopping = false;

  const start = (): void => {
    const startedAt = performance.now();
    let worker: ChildProcess;
    try {
      worker = forkOurselves(entry, ['work', ...args], processEnv);
    } catch (error) {
      // A lack of memory is thrown here; most other errors are events.
      again(messageOf(error), 0);
      return;
    }
    child = worker;
    log.debug({ worker: name, worker_pid: worker.pid }, 'worker started');
    ended = endOf(worker).then((ending) => {
      if (child !== worker) return;
      child = undefined;
      if (!stopping) again(ending, performance.now() - startedAt);
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

/** Worker processes seen from within: the parent that one has, and the process that it starts for one task. */

/** The time of a worker whose parent has vanished; the embedded database has gone with it. */
const orphanMs = 3_000;

/** Returns true if another process of ours started this one, even if it is gone. */
export function isForked(): boolean {
  return process.connected !== undefined;
}

/**
 * Stops this process when the one that forked it is gone: the kernel closes the IPC channel then, even after
 * kill -9. What was under way is given back, or found by its lease.
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
  // It may have gone while our modules were being loaded: the event has passed then.
  if (process.connected === false) leave();
}

/** Does a task in a process of its own: `sluice work --only`. */
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

/** Starts a process of ours. Its IPC channel is how it notices that we are gone, however we went. */
function forkOurselves(entry: string, words: readonly string[], processEnv: ProcessEnv): ChildProcess {
  return fork(entry, words, { env: { ...processEnv }, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
}

const wellEnded = 'exit code 0';

/** Resolves with what ended the process: an exit code, a signal, or why it never was. */
function endOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.on('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
    child.on('error', (error) => {
      // Also reported when a signal could not be sent: only a process that never was has ended by it.
      if (child.pid === undefined) resolve(error.message);
    });
  });
}

/*
 * Data may hold what our code takes for ever with, and code that never yields can be interrupted by nobody in its thread:
 * neither a stop nor a deadline would ever run. So another thread looks whether the event loop still turns, and ends the
 * process when it does not; what was under way is found by its lease. A thread and not the parent: `sluice work` may have
 * none, and a thread stands still with its process, so that one that was paused, or a machine that slept, is not taken for
 * one that hangs. Only ticks count in which this process ran.
 */
const ticks = 20;

/** The thread's code, as text because bundle, build and tsx have their files in different places. */
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
  // Nobody may read what we write.
  setTimeout(end, 1000);
  const line = { level: 60, time: new Date().toISOString(), name, pid: process.pid, msg: message };
  write(2, JSON.stringify(line) + '\\n', end);
}, tickMs);
`;

/** Ends this process when its event loop has been silent for `silentMs`. Holds nothing open. */
export function startWatchdog(name: string, silentMs: number): void {
  const beats = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const tickMs = silentMs / ticks;
  const message = `the event loop gave no sign for ${silentMs / 1000} s: this process is ended, and what it did is taken over`;
  const watcher = new Worker(thread, {
    eval: true,
    workerData: { beats, tickMs, ticks, name, message },
    // It needs next to nothing.
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4 },
    execArgv: [],
  });
  watcher.unref();
  setInterval(() => Atomics.add(beats, 0, 1), tickMs / 2).unref();
}
