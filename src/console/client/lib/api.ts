/*
 * The one way to the API, the session, and the address of the page. Every call carries the cookie of the session and names the environment
 * that this page shows, so that a change never reaches another environment that was chosen in another tab.
 */
import { signal } from '@preact/signals';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import type { Caller } from '../../../access/api.ts';
import type { Scope } from '../../../domain/scope.ts';

/** The prefix that a proxy puts before every path; the server writes it into the page. */
const prefix = document.documentElement.dataset['prefix'] ?? '';
/** Begins the address of every screen. */
export const consoleRoot = `${prefix}/console`;

type Values = Readonly<Record<string, string | number | undefined>>;

/** Returns the path with a query; values that are undefined or empty are left out. */
export function withQuery(path: string, values: Values, search = new URLSearchParams()): string {
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined || value === '') search.delete(name);
    else search.set(name, String(value));
  }
  const text = search.toString();
  return text === '' ? path : `${path}?${text}`;
}

/** Returns the address of a screen from its path in `screens.ts`, such as `/jobs`. */
export function screenHref(path: string, query: Values = {}): string {
  return withQuery(`${consoleRoot}${path === '/' ? '' : path}`, query);
}

/** Returns the address of something of the API from its path, such as `/v1/background_jobs`. */
export function apiHref(path: string): string {
  return prefix + path;
}

export interface Query {
  /** Returns what stands in the address, or ''. */
  readonly get: (name: string) => string;
  /** Returns those of the names that stand in the address, with their values. */
  readonly given: (names: readonly string[]) => Readonly<Record<string, string>>;
  /** Changes the address, without an entry in the history. */
  readonly set: (change: Values) => void;
  /** Changes the address, as a link does. */
  readonly go: (change: Values) => void;
  /** Returns value and handler of a filter, which leads to the first page of the list. */
  readonly filter: (name: string) => { readonly value: string; readonly onChange: (value: string) => void };
  /** Returns the address with a change, for a link. */
  readonly href: (change: Values) => string;
}

/** Filters, tab and selected row, which all stand in the address: a link to the page shows the same. */
export function useQuery(): Query {
  const { path, query, route } = useLocation();
  const href = (change: Values): string => withQuery(path, change, new URLSearchParams(query));
  // A field that loses the focus and a row that gets it both change the address before the page is drawn again.
  const change = (values: Values, replace: boolean): void =>
    route(withQuery(path, values, new URLSearchParams(location.search)), replace);
  const get = (name: string): string => query[name] ?? '';
  return {
    get,
    given: (names) => Object.fromEntries(names.flatMap((name) => (query[name] ? [[name, query[name]]] : []))),
    set: (values) => change(values, true),
    go: (values) => change(values, false),
    filter: (name) => ({
      value: get(name),
      onChange: (value) => change({ [name]: value, cursor: undefined, row: undefined }, false),
    }),
    href,
  };
}

/** An entry of the error record. */
interface Problem {
  readonly error_code: string;
  readonly message: string;
  readonly details: string;
}

/** An answer that is no success, no answer at all (status 0), or one that the page cannot use (-1). `<Problems>` shows it. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly problems: readonly Problem[];
  /** The id of the request in the server's log. */
  readonly requestId: string | null;

  constructor(status: number, problem: readonly Problem[] | string, requestId: string | null = null) {
    const problems =
      typeof problem === 'string' ? [{ error_code: '', message: problem, details: '' }] : problem;
    super(problems[0]?.message ?? `The server answered ${status}`);
    this.status = status;
    this.problems = problems;
    this.requestId = requestId;
  }

  /** True if the same request may succeed later: no answer came, or none of the API, or the server is overloaded or starting. */
  get isPassing(): boolean {
    return this.status <= 0 || this.status === 429 || this.status >= 500;
  }

  /** True if the reason may be that the whole service is away. */
  get isOfOutage(): boolean {
    return isAwayStatus(this.status);
  }
}

/**
 * Returns the error that the page shows for whatever was thrown: what is no error of the API, such as an answer that is not JSON,
 * is shown as well.
 */
export function problemOf(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  const details = thrown instanceof Error ? thrown.message : String(thrown);
  return new ApiError(-1, [{ error_code: 'page_failed', message: 'The page failed', details }]);
}

/** Tells whether the status, 0 if no answer came, is one of a service, or of a proxy, that cannot serve anybody. */
export function isAwayStatus(status: number): boolean {
  return status === 0 || (status >= 502 && status <= 504);
}

interface Outage {
  /** When the first request failed. */
  readonly since: string;
  /** Null until a second question has failed too: one failure is no outage. */
  readonly cause: 'unreachable' | 'overloaded' | 'database' | null;
}

/** The outage of the service, or the suspicion of one; `outage.ts` finds out which, and takes it back. */
export const outage = signal<Outage | null>(null);
/** Counts the outages that are over. After each, what is on the screen is loaded again. */
export const outagesOver = signal(0);

export function suspectOutage(): void {
  outage.value ??= { since: new Date().toISOString(), cause: null };
}

/** The session; `null` if nobody is signed in, undefined until that is known. */
export const session = signal<Caller | null | undefined>(undefined);

/** Tells whether the session has the scope. A control that needs one which it lacks is shown disabled, with the reason. */
export function mayUse(scope: Scope): boolean {
  return session.value?.scopes.includes(scope) === true;
}

interface CallOptions {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Sent as JSON; a Blob as it is. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

/** When the service last answered, by the clock of the page. */
let answeredAt = 0;

/** Returns how long the service has said nothing, because nothing was asked or nothing came. */
export function silentMs(): number {
  return performance.now() - answeredAt;
}

interface Answer {
  readonly headers: Headers;
  readonly text: string;
}

/** Returns a successful answer. Throws `ApiError`, and what `signal` aborts with. */
async function call(path: string, options: CallOptions): Promise<Answer> {
  const { method = 'GET', body, signal: aborted = null } = options;
  const headers = new Headers(options.headers);
  const environment = session.peek()?.environment;
  if (environment !== undefined) headers.set('sluice-environment', environment);
  const asIs = body instanceof Blob;
  if (body !== undefined && !asIs) headers.set('content-type', 'application/json');
  const sent = body === undefined ? null : asIs ? body : JSON.stringify(body);
  const request = { method, headers, body: sent, signal: aborted, credentials: 'same-origin' } as const;
  try {
    const response = await fetch(apiHref(path), request);
    const answer = { headers: response.headers, text: await response.text() };
    answeredAt = performance.now();
    if (response.ok) return answer;
    throw refusal(response.status, answer.text, answer.headers.get('x-request-id'));
  } catch (error) {
    if (error instanceof ApiError || aborted?.aborted === true) throw error;
    throw unreachable('The server cannot be reached');
  }
}

/** Returns the error of a request without an answer. */
export function unreachable(message: string): ApiError {
  suspectOutage();
  return new ApiError(0, [{ error_code: 'unreachable', message, details: '' }]);
}

/** Returns the error of an answer. If the session has ended, the address stays, and is shown again after signing in. */
export function refusal(status: number, body: string, requestId: string | null): ApiError {
  if (status === 401 && session.peek() != null) session.value = null;
  if (isAwayStatus(status)) suspectOutage();
  try {
    const { errors } = JSON.parse(body) as { readonly errors: readonly Problem[] };
    return new ApiError(status, errors, requestId);
  } catch {
    return new ApiError(status, `The server answered ${status}`, requestId);
  }
}

/** Returns the JSON of the answer; undefined if it has no body. */
export async function api<T>(path: string, options: CallOptions = {}): Promise<T> {
  const { text } = await call(path, options);
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

export function post<T>(path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  return api<T>(path, { method: 'POST', body, signal });
}

/** A page of a list. */
export interface Page<T> {
  readonly items: readonly T[];
  /** The number of items on all pages; `null` if the server does not count them. */
  readonly total: number | null;
  /** The cursor of the next page; `null` on the last. */
  readonly next: string | null;
}

/** Returns a page of a list. One that a search has left empty is followed by the next. */
async function apiPage<T>(path: string, signal: AbortSignal): Promise<Page<T>> {
  const [at = '', query] = path.split('?');
  let page = await onePage<T>(path, signal);
  while (page.items.length === 0 && page.next !== null)
    page = await onePage(withQuery(at, { cursor: page.next }, new URLSearchParams(query)), signal);
  return page;
}

/** Returns a page of a list, which is a bare array or `{data, metadata}`, with `Link` and `X-Total-Count`. */
async function onePage<T>(path: string, signal: AbortSignal): Promise<Page<T>> {
  const { headers, text } = await call(path, { signal });
  const body = JSON.parse(text) as readonly T[] | { readonly data: readonly T[] };
  const total = headers.get('x-total-count');
  const link = /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1];
  return {
    items: 'data' in body ? body.data : body,
    total: total === null ? null : Number(total),
    next: link === undefined ? null : new URL(link, location.origin).searchParams.get('cursor'),
  };
}

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
  /** What was asked for. */
  readonly key: string | null;
  /** What was asked for, and which time. */
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
      const backoff = failures === 0 ? ms : Math.min(longestPauseMs, ms * 2 ** failures);
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
        // What does not exist is not waited for.
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
