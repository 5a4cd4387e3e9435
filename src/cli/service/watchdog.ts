import { Worker } from 'node:worker_threads';

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
