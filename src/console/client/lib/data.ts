/* What a screen shows: data that is asked for again while it changes, and what buttons and forms send. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { growing } from '../../../base/retry.ts';
import { type ApiError, api, apiPage, outage, outagesOver, type Page, problemOf } from './api.ts';

export interface Loaded<T> {
  /** The last answer; it stays while the next about the same is loaded. */
  readonly data: T | undefined;
  readonly error: ApiError | null;
  readonly isLoading: boolean;
  readonly reload: () => void;
}

/** The pause before the next question, in milliseconds, or how to find it from the last answer. */
type Pause<T> = number | ((data: T | undefined) => number);

/** The pause while something changes, and once nothing is under way. */
export const pollMs = 2_000;
export const restMs = 15_000;

/** Loads what is at the path; `null` loads nothing. It is loaded again when `state` changes, and after each pause. */
export function useApi<T>(path: string | null, pause?: Pause<T>, state = ''): Loaded<T> {
  return useData(path && `${path} ${state}`, (signal) => api<T>(path ?? '', { signal }), pause);
}

export function useApiPage<T>(path: string | null, pause?: Pause<Page<T>>, state = ''): Loaded<Page<T>> {
  return useData(path && `${path} ${state}`, (signal) => apiPage<T>(path ?? '', signal), pause);
}

interface State<T> extends Pick<Loaded<T>, 'data' | 'error'> {
  /** The path that was asked for. */
  readonly key: string | null;
  /** The path that was asked for, and which time. */
  readonly asked: string;
}

/** Returns what a key is about: a list with other filters is about the same, another path is not. */
function subjectOf(key: string | null): string | null | undefined {
  return key?.startsWith('/') ? key.split(/[ ?]/)[0] : key && '';
}

/** The longest pause after failures: somebody is waiting in front of the page. */
const longestPauseMs = 10_000;

/**
 * Loads again whenever `key` changes, and after an outage; `null` loads nothing. With `pause` it is repeated, while the page is
 * visible. A late answer for a key that is no longer wanted is dropped. An outage is no error of what is loaded:
 * the frame shows it.
 */
export function useData<T>(
  key: string | null,
  load: (signal: AbortSignal) => Promise<T>,
  pause?: Pause<T>,
): Loaded<T> {
  const over = outagesOver.value;
  const [turn, setTurn] = useState(0);
  const asked = `${over} ${turn} ${key}`;
  const [state, setState] = useState<State<T>>({ data: undefined, error: null, key: null, asked: '' });
  const latest = useRef(load);
  latest.current = load;
  const latestPause = useRef(pause);
  latestPause.current = pause;
  useEffect(() => {
    if (key === null) return;
    const controller = new AbortController();
    const { signal } = controller;
    /** Undefined while an answer is awaited. */
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
        setState({ data, error: null, key, asked });
      } catch (thrown) {
        if (signal.aborted) return;
        failures++;
        const error = problemOf(thrown);
        setState((before) => ({
          data: subjectOf(before.key) === subjectOf(key) ? before.data : undefined,
          ...{ error, key, asked },
        }));
        // Nobody waits for something that does not exist.
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
  const isLoading = key !== null && state.asked !== asked;
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

/**
 * An action that runs once at a time. `run` resolves to false if it failed; `error` has the reason, which stays until the next
 * try.
 */
export function useAction<A extends readonly unknown[]>(act: (...given: A) => Promise<unknown>) {
  const [isRunning, setRunning] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const isBusy = useRef(false);
  const run = async (...given: A): Promise<boolean> => {
    if (isBusy.current) return false;
    isBusy.current = true;
    setRunning(true);
    setError(null);
    try {
      await act(...given);
      return true;
    } catch (thrown) {
      setError(problemOf(thrown));
      return false;
    } finally {
      isBusy.current = false;
      setRunning(false);
    }
  };
  return { run, isRunning, error };
}

/** The action of a form. */
export function useSubmit(act: () => Promise<unknown>) {
  const action = useAction(act);
  const onSubmit = (event: Event): void => {
    event.preventDefault();
    void action.run();
  };
  return { ...action, onSubmit };
}
