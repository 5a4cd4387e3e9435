/*
 * The one way to the API. The cookie of the session goes with every call; the environment that this page looks at goes along,
 * so that a change never reaches another one that was chosen in another tab.
 */
import { signal } from '@preact/signals';
import { apiHref } from './place.ts';

/** An entry of the error record. */
export interface Problem {
  readonly error_code: string;
  readonly message: string;
  readonly details: string;
}

/** Whatever the server answers that is no success; also that it does not answer. `<Problems>` shows it. */
export class ApiError extends Error {
  /** 0: no answer came. */
  readonly status: number;
  readonly problems: readonly Problem[];
  /** Under which the server's log knows the request. */
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

/** Null: nobody is signed in; undefined: it is not known yet. */
export const session = signal<Session | null | undefined>(undefined);

/** Whether the session may do what the scope allows. A control that it may not use is shown disabled, with the reason. */
export function mayUse(scope: Scope): boolean {
  return session.value?.scopes.includes(scope) === true;
}

export interface CallOptions {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Sent as JSON; a Blob, a FormData or a text as it is. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** The answer, as it came. Throws `ApiError`, and what `signal` aborts with. */
export async function call(path: string, options: CallOptions = {}): Promise<Response> {
  const { method = 'GET', body, signal: aborted } = options;
  const headers = new Headers(options.headers);
  const environment = session.peek()?.environment;
  if (environment !== undefined) headers.set('sluice-environment', environment);
  const asIs = body instanceof Blob || body instanceof FormData || typeof body === 'string';
  if (body !== undefined && !asIs) headers.set('content-type', 'application/json');
  let response: Response;
  try {
    response = await fetch(apiHref(path), {
      method,
      headers,
      credentials: 'same-origin',
      ...(body === undefined ? {} : { body: asIs ? (body as BodyInit) : JSON.stringify(body) }),
      ...(aborted === undefined ? {} : { signal: aborted }),
    });
  } catch (error) {
    if (aborted?.aborted === true) throw error;
    throw new ApiError(0, [unreachable], null);
  }
  if (response.ok) return response;
  // The session has ended: what is in the address stays, and is shown again after signing in.
  if (response.status === 401 && session.peek() != null) session.value = null;
  throw new ApiError(response.status, await readProblems(response), response.headers.get('x-request-id'));
}

const unreachable: Problem = {
  error_code: 'unreachable',
  message: 'The server cannot be reached',
  details: '',
};

/** The JSON of the answer; undefined where it has none. */
export async function api<T>(path: string, options?: CallOptions): Promise<T> {
  const response = await call(path, options);
  const text = await response.text();
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

/** A page of a list. */
export interface Page<T> {
  readonly items: readonly T[];
  /** How many match on all pages; null where the server does not count them. */
  readonly total: number | null;
  /** The cursor of the next page; null on the last. */
  readonly next: string | null;
}

/** A list: a bare array with `Link` and `X-Total-Count`, or `{data, metadata}`. */
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

/** A path with a query; what is undefined or empty is left out. */
export function withQuery(
  path: string,
  query: Readonly<Record<string, string | number | undefined>>,
): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') search.set(name, String(value));
  }
  const text = search.toString();
  return text === '' ? path : `${path}?${text}`;
}

async function readProblems(response: Response): Promise<readonly Problem[]> {
  try {
    const { errors } = (await response.json()) as { readonly errors: readonly Problem[] };
    return errors;
  } catch {
    return [{ error_code: '', message: `The server answered ${response.status}`, details: '' }];
  }
}
