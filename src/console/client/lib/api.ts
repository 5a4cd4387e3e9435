/*
 * Calls of the API, and the session. Every call names the page's environment, so a page cannot
 * change an environment that was chosen in another tab.
 */
import { signal } from '@preact/signals';
import type { Scope } from '../../../domain/caller.ts';
import { apiHref, withQuery } from './address.ts';

interface Problem {
  readonly error_code: string;
  readonly message: string;
  readonly details: string;
}

/**
 * Error of a request. `status` is 0 if there was no response, and -1 if the response was unusable.
 */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly problems: readonly Problem[];
  readonly requestId: string | null;

  constructor(status: number, problem: readonly Problem[] | string, requestId: string | null = null) {
    const problems =
      typeof problem === 'string' ? [{ error_code: '', message: problem, details: '' }] : problem;
    super(problems[0]?.message ?? `The server answered ${status}`);
    this.status = status;
    this.problems = problems;
    this.requestId = requestId;
  }

  get isTransient(): boolean {
    return this.status <= 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }

  get isOfOutage(): boolean {
    return isAwayStatus(this.status);
  }
}

/**
 * Returns an ApiError unchanged, and wraps any other error in one, for example if the response was
 * not JSON.
 */
export function problemOf(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  const details = error instanceof Error ? error.message : String(error);
  return new ApiError(-1, [{ error_code: 'page_failed', message: 'The page failed', details }]);
}

/** Status 0 means that no response was received. */
export function isAwayStatus(status: number): boolean {
  return status === 0 || (status >= 502 && status <= 504);
}

interface Outage {
  readonly since: string;
  /** `null` until a second request has failed, because one failure is not an outage. */
  readonly cause: 'unreachable' | 'overloaded' | 'database' | null;
}

/** The current or suspected outage, which `outage.ts` ends. */
export const outage = signal<Outage | null>(null);
/** Number of outages that have ended. The screen reloads its data after each. */
export const outagesOver = signal(0);

export function suspectOutage(): void {
  outage.value ??= { since: new Date().toISOString(), cause: null };
}

/** `src/access/console` declares further members. */
export interface Session {
  readonly environment: string;
  readonly scopes: readonly Scope[];
}

/** The reason why the session of the page has ended. `null` if the service gave no reason. */
export const sessionEnd = signal<string | null>(null);

/** `null` if nobody is signed in. Undefined until that is known. */
export const session = signal<Session | null | undefined>(undefined);

/** True if the session has the scope. Controls that need a missing scope are disabled. */
export function mayUse(scope: Scope): boolean {
  return session.value?.scopes.includes(scope) === true;
}

interface CallOptions {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

/** Time of the last response, by the monotonic clock of the page. */
let answeredAt = 0;

export function silentMs(): number {
  return performance.now() - answeredAt;
}

interface Answer {
  readonly headers: Headers;
  readonly text: string;
}

/** @throws ApiError, or the reason of `signal` */
async function call(path: string, options: CallOptions): Promise<Answer> {
  const { method = 'GET', body, signal: abortSignal = null } = options;
  const headers = new Headers(options.headers);
  const environment = session.peek()?.environment;
  if (environment !== undefined) headers.set('sluice-environment', environment);
  const isBlob = body instanceof Blob;
  if (body !== undefined && !isBlob) headers.set('content-type', 'application/json');
  const requestBody = body === undefined || isBlob ? (body ?? null) : JSON.stringify(body);
  const request = {
    method,
    headers,
    body: requestBody,
    signal: abortSignal,
    credentials: 'same-origin',
  } as const;
  try {
    const response = await fetch(apiHref(path), request);
    const answer = { headers: response.headers, text: await response.text() };
    answeredAt = performance.now();
    if (response.ok) return answer;
    throw refusal(response.status, answer.text, answer.headers.get('x-request-id'));
  } catch (error) {
    if (error instanceof ApiError || abortSignal?.aborted === true) throw error;
    throw unreachable('The server cannot be reached');
  }
}

export function unreachable(message: string): ApiError {
  suspectOutage();
  return new ApiError(0, [{ error_code: 'unreachable', message, details: '' }]);
}

/** Status 401 ends the session. */
export function refusal(status: number, body: string, requestId: string | null): ApiError {
  if (status === 401 && session.peek() != null) session.value = null;
  if (isAwayStatus(status)) suspectOutage();
  try {
    const { errors } = JSON.parse(body) as { readonly errors: readonly Problem[] };
    const end = errors.find(({ details }) => status === 401 && details === 'session');
    if (end !== undefined) sessionEnd.value = end.message;
    return new ApiError(status, errors, requestId);
  } catch {
    return new ApiError(status, `The server answered ${status}`, requestId);
  }
}

/** Returns the parsed body of the response, or undefined if the response has no body. */
export async function api<T>(path: string, options: CallOptions = {}): Promise<T> {
  const { text } = await call(path, options);
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

export function post<T>(path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  return api<T>(path, { method: 'POST', body, signal });
}

export interface Page<T> {
  readonly items: readonly T[];
  /** Number of items on all pages. `null` if the server does not count them. */
  readonly total: number | null;
  /** Cursor of the next page. `null` on the last page. */
  readonly next: string | null;
}

/** Skips pages on which a search has found nothing. */
export async function apiPage<T>(path: string, signal: AbortSignal): Promise<Page<T>> {
  const [at = '', query] = path.split('?');
  let page = await onePage<T>(path, signal);
  while (page.items.length === 0 && page.next !== null)
    page = await onePage(withQuery(at, { cursor: page.next }, new URLSearchParams(query)), signal);
  return page;
}

/** Loads one page. The body of the response is an array or `{data}`. */
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
