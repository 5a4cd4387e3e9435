/*
 * The one way to the API, and the session. Every call carries the cookie of the session and names
 * the environment that this page shows, so that a change never reaches another environment that was
 * chosen in another tab.
 */
import { signal } from '@preact/signals';
import type { Scope } from '../../../domain/scope.ts';
import { apiHref, withQuery } from './address.ts';

interface Problem {
  readonly error_code: string;
  readonly message: string;
  readonly details: string;
}

/** An error answer, none (status 0), or one the page cannot use (-1). `<Problems>` shows it. */
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

  /** True if the same request may succeed later. */
  get isPassing(): boolean {
    return this.status <= 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }

  /** True if the reason may be that the whole service is away. */
  get isOfOutage(): boolean {
    return isAwayStatus(this.status);
  }
}

/** Returns the error to show for anything thrown, such as an answer that is not JSON. */
export function problemOf(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  const details = thrown instanceof Error ? thrown.message : String(thrown);
  return new ApiError(-1, [{ error_code: 'page_failed', message: 'The page failed', details }]);
}

/** Returns true for a status of a service or proxy that serves nobody. 0: no answer came. */
export function isAwayStatus(status: number): boolean {
  return status === 0 || (status >= 502 && status <= 504);
}

interface Outage {
  /** When the first request failed. */
  readonly since: string;
  /** Stays null until a second question has failed too: one failure is no outage. */
  readonly cause: 'unreachable' | 'overloaded' | 'database' | null;
}

/**
 * The outage of the service, or the suspicion of one; `outage.ts` finds out which, and takes it
 * back.
 */
export const outage = signal<Outage | null>(null);
/** Counts ended outages. After each, the screen is loaded again. */
export const outagesOver = signal(0);

export function suspectOutage(): void {
  outage.value ??= { since: new Date().toISOString(), cause: null };
}

/** The session of the page. `src/access/console` declares what else it has. */
export interface Session {
  readonly environment: string;
  readonly scopes: readonly Scope[];
}

/** The session; `null` if nobody is signed in, undefined until that is known. */
export const session = signal<Session | null | undefined>(undefined);

/** A control whose scope the session lacks is shown disabled, with the reason. */
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

/** Returns the error of an answer. After an ended session the address stays. */
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

export interface Page<T> {
  readonly items: readonly T[];
  /** The number of items on all pages; `null` if the server does not count them. */
  readonly total: number | null;
  /** The cursor of the next page; `null` on the last. */
  readonly next: string | null;
}

/** Returns a page of a list. One that a search has left empty is followed by the next. */
export async function apiPage<T>(path: string, signal: AbortSignal): Promise<Page<T>> {
  const [at = '', query] = path.split('?');
  let page = await onePage<T>(path, signal);
  while (page.items.length === 0 && page.next !== null)
    page = await onePage(withQuery(at, { cursor: page.next }, new URLSearchParams(query)), signal);
  return page;
}

/**
 * Returns a page of a list, which is a bare array or `{data, metadata}`, with `Link` and
 * `X-Total-Count`.
 */
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
