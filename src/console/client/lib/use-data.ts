import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from './api.ts';

export interface Loaded<T> {
  /** What came last; it stays while the next is loaded. */
  readonly data: T | undefined;
  readonly error: ApiError | null;
  readonly isLoading: boolean;
  /** Loads it again, now. */
  readonly reload: () => void;
}

export interface LoadOptions {
  /** Loads it again so long after each answer, while the page is looked at; undefined: not by itself. */
  readonly everyMs?: number | undefined;
}

/** A failure is followed by a longer pause, up to this: whoever looks at the page waits for it. */
const longestPauseMs = 10_000;

/**
 * What `load` brings, again whenever `key` changes. The key names what is loaded, such as its path with the query; null:
 * nothing. An answer that comes late, for a key that is no longer wanted, is dropped.
 */
export function useData<T>(
  key: string | null,
  load: (signal: AbortSignal) => Promise<T>,
  { everyMs }: LoadOptions = {},
): Loaded<T> {
  const [state, setState] = useState<{ readonly data: T | undefined; readonly error: ApiError | null }>({
    data: undefined,
    error: null,
  });
  const [isLoading, setLoading] = useState(key !== null);
  const [turn, setTurn] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  useEffect(() => {
    if (key === null) return;
    const controller = new AbortController();
    const { signal } = controller;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let failures = 0;
    const again = (): void => {
      if (everyMs === undefined || signal.aborted) return;
      const pause = Math.min(longestPauseMs, everyMs * 2 ** failures);
      timer = setTimeout(() => (document.hidden ? again() : void run()), pause);
    };
    const run = async (): Promise<void> => {
      try {
        const data = await latest.current(signal);
        if (signal.aborted) return;
        failures = 0;
        setState({ data, error: null });
      } catch (error) {
        if (signal.aborted) return;
        failures++;
        if (!(error instanceof ApiError)) throw error;
        setState(({ data }) => ({ data, error }));
      } finally {
        if (!signal.aborted) setLoading(false);
      }
      again();
    };
    const onVisible = (): void => {
      if (document.hidden || everyMs === undefined) return;
      clearTimeout(timer);
      void run();
    };
    setLoading(true);
    void run();
    document.addEventListener('visibilitychange', onVisible);
    return () => {
      document.removeEventListener('visibilitychange', onVisible);
      clearTimeout(timer);
      controller.abort();
    };
  }, [key, everyMs, turn]);
  const reload = useCallback(() => setTurn((before) => before + 1), []);
  return { ...state, isLoading, reload };
}

export interface Action {
  /** Calls it; what fails is in `error`, and nothing is thrown. Resolves to whether it worked. */
  readonly run: () => Promise<boolean>;
  readonly isRunning: boolean;
  readonly error: ApiError | null;
  readonly clear: () => void;
}

/** Something that is done when asked for, once at a time. Its error stays until it is tried again. */
export function useAction(act: () => Promise<unknown>): Action {
  const [isRunning, setRunning] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const isBusy = useRef(false);
  const run = async (): Promise<boolean> => {
    if (isBusy.current) return false;
    isBusy.current = true;
    setRunning(true);
    setError(null);
    try {
      await act();
      return true;
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown;
      setError(thrown);
      return false;
    } finally {
      isBusy.current = false;
      setRunning(false);
    }
  };
  return { run, isRunning, error, clear: () => setError(null) };
}
