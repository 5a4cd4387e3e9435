/*
 * The one way to the API. Every call carries the cookie of the session and names the environment that this page shows, so that
 * a change never reaches another environment that was chosen in another tab.
 */
import { signal } from '@preact/signals';
import { apiHref, withQuery } from './address.ts';

/** An entry of the error record. */
export interface Problem {
  readonly error_code: string;
  readonly message: string;
  readonly details: string;
}

/** An answer that is no success, or no answer at all. `<Problems>` shows it. */
export class ApiError extends Error {
  /** 0: no answer came. */
  readonly status: number;
  readonly problems: readonly Problem[];
  /** The id of the request in the server's log. */
  readonly requestId: string | null;

  constructor(status: number, problems: readonly Problem[], requestId: string | null) {
    super(problems[0]?.message ?? `The server answered ${status}`);
    this.name = 'ApiError';
    this.status = status;
    this.problems = problems;
    this.requestId = requestId;
  }

  /** True if the same request may succeed later: no answer came, or the server is overloaded or starting. */
  get isPassing(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

export type Scope = 'ingest' | 'import' | 'export' | 'read' | 'delete';

/** Who is signed in. */
export interface Session {
  readonly environment: string;
  readonly environments: readonly string[];
  readonly scopes: readonly Scope[];
  readonly key_id: string;
  readonly is_admin: boolean;
  readonly session_id: string | null;
  readonly expires_at: string | null;
  readonly version: string;
}

/** The session; `null` if nobody is signed in, undefined until that is known. */
export const session = signal<Session | null | undefined>(undefined);

/** Tells whether the session has the scope. A control that needs one which it lacks is shown disabled, with the reason. */
export function mayUse(scope: Scope): boolean {
  return session.value?.scopes.includes(scope) === true;
}

export interface CallOptions {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Sent as JSON; a Blob as it is. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

/** Returns the answer as it came. Throws `ApiError`, and what `signal` aborts with. */
export async function call(path: string, options: CallOptions = {}): Promise<Response> {
  const { method = 'GET', body, signal: aborted } = options;
  const headers = new Headers(options.headers);
  const environment = session.peek()?.environment;
  if (environment !== undefined) headers.set('sluice-environment', environment);
  const asIs = body instanceof Blob;
  if (body !== undefined && !asIs) headers.set('content-type', 'application/json');
  let response: Response;
  try {
    response = await fetch(apiHref(path), {
      method,
      headers,
      credentials: 'same-origin',
      ...(body === undefined ? {} : { body: asIs ? body : JSON.stringify(body) }),
      ...(aborted === undefined ? {} : { signal: aborted }),
    });
  } catch (error) {
    if (aborted?.aborted === true) throw error;
    throw new ApiError(0, [unreachable], null);
  }
  if (response.ok) return response;
  // The session has ended. The address stays, and is shown again after signing in.
  if (response.status === 401 && session.peek() != null) session.value = null;
  const problems = problemsOf(response.status, await response.text());
  throw new ApiError(response.status, problems, response.headers.get('x-request-id'));
}

const unreachable: Problem = {
  error_code: 'unreachable',
  message: 'The server cannot be reached',
  details: '',
};

/** Returns the JSON of the answer; undefined if it has no body. */
export async function api<T>(path: string, options?: CallOptions): Promise<T> {
  const response = await call(path, options);
  const text = await response.text();
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

/** A page of a list. */
export interface Page<T> {
  readonly items: readonly T[];
  /** The number of items on all pages; `null` if the server does not count them. */
  readonly total: number | null;
  /** The cursor of the next page; `null` on the last. */
  readonly next: string | null;
}

/** Returns a page of a list, which is a bare array or `{data, metadata}`, with `Link` and `X-Total-Count`. */
export async function apiPage<T>(path: string, options?: CallOptions): Promise<Page<T>> {
  const response = await call(path, options);
  const body = (await response.json()) as readonly T[] | { readonly data: readonly T[] };
  const total = response.headers.get('x-total-count');
  const link = /<([^>]+)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1];
  const next = link === undefined ? null : new URL(link, location.origin).searchParams.get('cursor');
  return {
    items: 'data' in body ? body.data : body,
    total: total === null ? null : Number(total),
    next,
  };
}

/** Returns how many items the list has, without loading them. */
export async function apiTotal(
  path: string,
  query: Parameters<typeof withQuery>[1],
  signal: AbortSignal,
): Promise<number> {
  const { metadata } = await api<{ readonly metadata: { readonly total_count: number } }>(
    withQuery(path, { ...query, limit: 1 }),
    { signal },
  );
  return metadata.total_count;
}

/** Reads the error record out of the body of an answer. */
export function problemsOf(status: number, body: string): readonly Problem[] {
  try {
    return (JSON.parse(body) as { readonly errors: readonly Problem[] }).errors;
  } catch {
    return [{ error_code: '', message: `The server answered ${status}`, details: '' }];
  }
}
