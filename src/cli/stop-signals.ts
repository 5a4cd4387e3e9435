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
}

/**
 * The first signal asks for a graceful stop, the second ends the process at once, after `onSecond`. Signals in
 * `ignored` do nothing.
 */
export function listenForStop(
  options: { readonly onSecond?: () => void; readonly ignored?: readonly StopSignal[] } = {},
): StopRequest {
  const controller = new AbortController();
  let tell: (signal: StopSignal) => void = () => undefined;
  const requested = new Promise<StopSignal>((resolve) => {
    tell = resolve;
  });
  for (const name of stopSignals) {
    process.on(name, () => {
      if (options.ignored?.includes(name) === true) return;
      if (controller.signal.aborted) {
        options.onSecond?.();
        process.exit(128 + constants.signals[name]);
      }
      controller.abort();
      tell(name);
    });
  }
  return {
    signal: controller.signal,
    requested,
    request: () => {
      controller.abort();
      tell('SIGTERM');
    },
  };
}
