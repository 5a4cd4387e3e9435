import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from './api.ts';

export interface Loaded<T> {
  /** The last answer; it stays while the next is loaded. */
  readonly data: T | undefined;
  readonly error: ApiError | null;
  readonly isLoading: boolean;
  readonly reload: () => void;
}

export interface LoadOptions {
  /** The pause after each answer before it is loaded again, while the page is visible. Without it nothing is repeated. */
  readonly everyMs?: number | undefined;
}

/** The longest pause after failures: somebody is waiting in front of the page. */
const longestPauseMs = 10_000;

/**
 * Loads again whenever `key` changes. The key names what is loaded, such as its path with the query; `null` loads nothing. A late
 * answer for a key that is no longer wanted is dropped.
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
  /** Resolves to false if it failed, with the reason in `error`; throws nothing. */
  readonly run: () => Promise<boolean>;
  readonly isRunning: boolean;
  readonly error: ApiError | null;
}

/** An action that runs once at a time. Its error stays until the next try. */
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
  return { run, isRunning, error };
}
