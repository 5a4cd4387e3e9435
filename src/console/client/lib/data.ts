import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { growing } from '../../../base/retry.ts';
import { type ApiError, api, apiPage, outage, outagesOver, type Page, problemOf } from './api.ts';

export interface Loaded<T> {
  /** While a list loads with changed filters, its previous data remains. */
  readonly data: T | undefined;
  readonly error: ApiError | null;
  readonly isLoading: boolean;
  readonly reload: () => void;
}

/** Pause in milliseconds, or a function that computes it from the last response. */
type Pause<T> = number | ((data: T | undefined) => number);

/** Pauses in milliseconds: `pollMs` while something changes, otherwise `restMs`. */
export const pollMs = 2_000;
export const restMs = 15_000;

/**
 * Loads the response of the API at the start, whenever `state` changes, and after each pause. If
 * `path` is `null`, nothing is loaded.
 */
export function useApi<T>(path: string | null, pause?: Pause<T>, state = ''): Loaded<T> {
  return useData(path && `${path} ${state}`, (signal) => api<T>(path ?? '', { signal }), pause);
}

export function useApiPage<T>(path: string | null, pause?: Pause<Page<T>>, state = ''): Loaded<Page<T>> {
  return useData(path && `${path} ${state}`, (signal) => apiPage<T>(path ?? '', signal), pause);
}

interface State<T> extends Pick<Loaded<T>, 'data' | 'error'> {
  readonly key: string | null;
  readonly request: string;
}

/** Returns the path without the query, because a changed filter does not change the subject. */
function subjectOf(key: string | null): string | null | undefined {
  return key?.startsWith('/') ? key.split(/[ ?]/)[0] : key && '';
}

/** Maximum pause after failed requests. It is short, because a person is waiting. */
const longestPauseMs = 10_000;

/**
 * Loads when `key` changes, after an outage and, while the page is visible, after each `pause`. If
 * `key` is `null`, nothing is loaded. Ignores late responses for earlier keys. `Away` reports
 * outages.
 */
export function useData<T>(
  key: string | null,
  load: (signal: AbortSignal) => Promise<T>,
  pause?: Pause<T>,
): Loaded<T> {
  const over = outagesOver.value;
  const [turn, setTurn] = useState(0);
  const request = `${over} ${turn} ${key}`;
  const [state, setState] = useState<State<T>>({ data: undefined, error: null, key: null, request: '' });
  const latest = useRef(load);
  latest.current = load;
  const latestPause = useRef(pause);
  latestPause.current = pause;
  useEffect(() => {
    if (key === null) return;
    const controller = new AbortController();
    const { signal } = controller;
    /** Undefined while a request is running. */
    let timer: ReturnType<typeof setTimeout> | undefined;
    let failures = 0;
    let answer: T | undefined;
    const again = (): void => {
      const { current } = latestPause;
      if (current === undefined) return;
      const ms = typeof current === 'number' ? current : current(answer);
      const backoff = failures === 0 ? ms : growing(2 * ms, longestPauseMs)(failures);
      timer = setTimeout(() => (document.hidden ? again() : void run()), backoff);
    };
    const run = async (): Promise<void> => {
      timer = undefined;
      try {
        const data = await latest.current(signal);
        if (signal.aborted) return;
        failures = 0;
        answer = data;
        setState({ data, error: null, key, request });
      } catch (cause) {
        if (signal.aborted) return;
        failures++;
        const error = problemOf(cause);
        setState((before) => ({
          data: subjectOf(before.key) === subjectOf(key) ? before.data : undefined,
          error,
          key,
          request,
        }));
        // The requested item does not exist, so polling stops.
        if (error.status === 404) return;
      }
      again();
    };
    const onVisible = (): void => {
      if (document.hidden || timer === undefined) return;
      clearTimeout(timer);
      void run();
    };
    void run();
    document.addEventListener('visibilitychange', onVisible, { signal });
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [key, turn, over]);
  const reload = useCallback(() => setTurn((before) => before + 1), []);
  const isLoading = key !== null && state.request !== request;
  if (subjectOf(state.key) !== subjectOf(key)) return { data: undefined, error: null, isLoading, reload };
  const { data, error } = state;
  const isAway = error?.isOfOutage === true && (outage.value !== null || isLoading);
  return {
    data,
    error: isAway ? null : error,
    isLoading: isLoading || (isAway && data === undefined),
    reload,
  };
}

/** An action cannot run twice at a time. If it fails, `run` sets `error` and resolves to false. */
export function useAction<A extends readonly unknown[]>(act: (...args: A) => Promise<unknown>) {
  const [isRunning, setRunning] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const isBusy = useRef(false);
  const run = async (...args: A): Promise<boolean> => {
    if (isBusy.current) return false;
    isBusy.current = true;
    setRunning(true);
    setError(null);
    try {
      await act(...args);
      return true;
    } catch (cause) {
      setError(problemOf(cause));
      return false;
    } finally {
      isBusy.current = false;
      setRunning(false);
    }
  };
  return { run, isRunning, error };
}

export function useSubmit(act: () => Promise<unknown>) {
  const action = useAction(act);
  const onSubmit = (event: Event): void => {
    event.preventDefault();
    void action.run();
  };
  return { ...action, onSubmit };
}
