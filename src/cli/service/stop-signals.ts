import { constants } from 'node:os';

/** SIGHUP too: it is what a terminal that is closed sends. */
const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
type StopSignal = (typeof stopSignals)[number];

export interface StopRequest {
  /** Aborted by the first signal. */
  readonly signal: AbortSignal;
  /** Resolves with the first signal. */
  readonly requested: Promise<StopSignal>;
  /** Asks for the stop from within. */
  request(): void;
  /** Called by the second signal, just before the process ends. */
  onSecond: (() => void) | null;
}

/** npm passes a Ctrl-C on that has reached us already, since the terminal sends it to the whole group. */
const echoMs = 500;
const runnerPollMs = 500;

/**
 * The first signal asks for a graceful stop, the second ends the process at once. Signals in `ignored` do nothing. The end
 * of the npm that runs us is a signal too: its shell passes none on.
 */
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
  if (isRunByNpm()) watchRunner(() => stop('SIGTERM'), controller.signal);
  return request;
}

/** By npm itself, not by a process of ours that npm runs: that one has a channel to us. */
function isRunByNpm(): boolean {
  return process.env['npm_lifecycle_event'] !== undefined && process.connected === undefined;
}

/** Our parent is npm or its shell. Either may be ended by a signal that it does not pass on (SIGHUP, SIGKILL). */
function watchRunner(onGone: () => void, stopped: AbortSignal): void {
  const runner = process.ppid;
  const poll = setInterval(() => {
    if (process.ppid === runner && !stopped.aborted) return;
    clearInterval(poll);
    if (!stopped.aborted) onGone();
  }, runnerPollMs);
  poll.unref();
}
