import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { verifySession } from '../../access/console-session.ts';
import type { Environment } from '../../access/environment-store.ts';
import {
  type Caller,
  inTime,
  isRefusal,
  KeyCache,
  type KeyRefusal,
  LookupTurns,
  verifyKey,
} from '../../access/verify-key.ts';
import { inputError } from '../../base/errors.ts';
import { CONSOLE_SESSION_MS } from '../../base/limits.ts';
import type { System } from '../../context.ts';
import type { Scope } from '../../domain/scope.ts';
import type { Origin } from '../../domain/task.ts';
import { isForwardedTls } from '../page.ts';

type NeededScope = Scope | 'any';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before the handler runs, on every route that names a scope. */
    caller: Caller | null;
    keyRefusal: KeyRefusal | null;
  }
  interface FastifyContextConfig {
    /** The scope that the key must have; `any` takes every key. Every route that touches data names one. */
    scope?: NeededScope;
    /** Trusts a key that was valid a second ago: the route is called thousands of times a second. */
    trustsKnownKeys?: true;
    /** The key may be in the body: without an Authorization header the handler calls `admitKey`. */
    keyInBody?: true;
    /** A key for pages may not call the route, though it takes records. */
    notOfPages?: true;
  }
  interface FastifyInstance {
    /** Admits the caller of a request by a key that may send records. @throws InputError if it may not. */
    admitKey: (request: FastifyRequest, reply: FastifyReply, key: string) => Promise<void>;
  }
}

/**
 * Checks the key before anything of the body is read. Every request looks it up, so that a key is refused from the moment it is revoked.
 * Requests for single records and profiles are too many for that: they may be a second behind.
 *
 * A request without a key may carry the cookie of a session of the console. It may do what the session's key may, if it comes from the
 * console itself (`crossOriginProblem`).
 */
export function addAuth(app: FastifyInstance, { db, config }: System): void {
  const turns = new LookupTurns();
  const verify = (header: string): Promise<Caller | KeyRefusal> =>
    inTime(verifyKey(db, config.apiKey, header, turns));
  const verifyCookie = (cookie: string): Promise<Caller | KeyRefusal> =>
    inTime(turns.run(cookie, () => verifySession(db, config, cookie)));
  const cache = new KeyCache(verify);
  app.decorateRequest('caller', null);
  app.decorateRequest('keyRefusal', null);
  app.decorate('admitKey', async (request, reply, key) => {
    const found = cache.get(key) ?? (await cache.find(key));
    const problem = admit(request, reply, found, 'ingest') ?? app.countCall(request, reply);
    if (problem !== undefined) throw problem;
  });
  // A callback lets the request of a known caller go on in the same turn of the event loop.
  app.addHook('onRequest', (request, reply, done) => {
    const { scope, trustsKnownKeys, keyInBody } = request.routeOptions.config;
    const isLater = keyInBody === true && request.headers.authorization === undefined;
    if (scope === undefined || isLater) {
      done();
      return;
    }
    const header = request.headers.authorization ?? '';
    const cookie = header === '' ? sessionCookie(request) : null;
    if (cookie !== null) {
      const problem = crossOriginProblem(request);
      const asked = problem === null ? verifyCookie(cookie) : null;
      if (asked === null) done(problem ?? undefined);
      else asked.then((caller) => done(admit(request, reply, caller, scope)), done);
      return;
    }
    const cached = scope === 'ingest' || trustsKnownKeys === true;
    const known = cached ? cache.get(header) : null;
    if (known !== null) {
      done(admit(request, reply, known, scope));
      return;
    }
    const asked = cached ? cache.find(header) : verify(header);
    asked.then((caller) => done(admit(request, reply, caller, scope)), done);
  });
}

function admit(
  request: FastifyRequest,
  reply: FastifyReply,
  found: Caller | KeyRefusal,
  scope: NeededScope,
): Error | undefined {
  if (isRefusal(found)) {
    request.keyRefusal = found;
    reply.header('www-authenticate', 'Token');
    return inputError('invalid_api_key', 'Unauthorized - Invalid API key', refusals[found.refused]);
  }
  const expected = request.headers['sluice-environment'];
  if (found.session !== undefined && expected !== undefined && expected !== found.environment.name) {
    return inputError(
      'insufficient_scope',
      'The session looks at another environment now; load the page again',
      `environment: ${found.environment.name}`,
    );
  }
  request.caller = found;
  const isOfPage = found.scopes.includes('browser');
  const isForPages = scope === 'ingest' && request.routeOptions.config.notOfPages !== true;
  if (isOfPage ? !isForPages : scope !== 'any' && !found.scopes.includes(scope)) {
    return insufficient(scope, found.scopes);
  }
  return request.server.checkOrigin(request, reply);
}

const wanted = 'the header Authorization: Token <API_KEY>';
const notKnown = 'the key is unknown, revoked or expired';

/** Details of a refusal. A caller does not learn which keys exist. */
const refusals: Readonly<Record<KeyRefusal['refused'], string>> = {
  missing: `${wanted} is missing`,
  malformed: `not of the form that is expected: ${wanted} (or Bearer, or the key alone), a key that begins with slk_`,
  unknown: notKnown,
  revoked: notKnown,
  expired: notKnown,
};

/** The environment that the caller's key opens: the only one whose data the request may touch. */
export function callerEnvironment(request: FastifyRequest): Environment {
  return callerOf(request).environment;
}

export function environmentId(request: FastifyRequest): number {
  return callerOf(request).environment.environmentId;
}

export function callerKeyId(request: FastifyRequest): string {
  return callerOf(request).keyId;
}

export function callerOrigin(request: FastifyRequest): Origin {
  return { kind: 'api_key', name: callerKeyId(request) };
}

export function hasScope(request: FastifyRequest, scope: Scope): boolean {
  return callerOf(request).scopes.includes(scope);
}

export function requireScope(request: FastifyRequest, scope: Scope): void {
  if (!hasScope(request, scope)) throw insufficient(scope, callerOf(request).scopes);
}

export function requireAdmin(request: FastifyRequest): void {
  if (callerOf(request).session?.isAdmin === true) return;
  const details = 'needed: a session begun with ADMIN_KEY, or by a link of the command line';
  throw inputError('insufficient_scope', 'The key does not allow this', details);
}

export function callerOf(request: FastifyRequest): Caller {
  if (request.caller === null) throw new Error(`the route ${request.routeOptions.url} names no scope`);
  return request.caller;
}

function insufficient(scope: NeededScope, scopes: readonly Scope[]): Error {
  const details = `needed: ${scope}; the key has: ${scopes.join(', ')}`;
  return inputError('insufficient_scope', 'The key does not allow this', details);
}

/* The cookie of a session of the console is read, set and cleared here, and believed only of the console's own requests. */

const name = 'sluice_session';
const pattern = new RegExp(`(?:^|;)\\s*${name}=([\\w-]{43})\\s*(?:;|$)`);

function sessionCookie({ headers: { cookie } }: FastifyRequest): string | null {
  return cookie === undefined ? null : (pattern.exec(cookie)?.[1] ?? null);
}

export function setSessionCookie(
  request: FastifyRequest,
  reply: FastifyReply,
  cookie: string,
  publicUrl: string | null,
): void {
  reply.header('set-cookie', write(request, cookie, CONSOLE_SESSION_MS / 1_000, publicUrl));
}

export function clearSessionCookie(
  request: FastifyRequest,
  reply: FastifyReply,
  publicUrl: string | null,
): void {
  reply.header('set-cookie', write(request, '', 0, publicUrl));
}

function write(request: FastifyRequest, value: string, seconds: number, publicUrl: string | null): string {
  const attributes = ['Path=/', `Max-Age=${seconds}`, 'HttpOnly', 'SameSite=Strict'];
  if (isHttps(request, publicUrl)) attributes.push('Secure');
  return [`${name}=${value}`, ...attributes].join('; ');
}

/** Goes by PUBLIC_URL, or by the proxy. A caller who forges the header only keeps the cookie from being sent without TLS. */
function isHttps(request: FastifyRequest, publicUrl: string | null): boolean {
  return publicUrl?.startsWith('https:') === true || isForwardedTls(request);
}

const reading = new Set(['GET', 'HEAD']);

/**
 * Returns why the cookie is not believed of this request, or `null` if it is. `SameSite=Strict` keeps other sites away already, but
 * another port of the same machine is the same site. A browser sends `Sec-Fetch-Site` only where it trusts the
 * connection (https, or this machine); over plain http from another one `Origin` says the same of changes.
 */
export function crossOriginProblem(request: FastifyRequest): Error | null {
  const { 'sec-fetch-site': site, origin, host } = request.headers;
  const isChange = !reading.has(request.method);
  if (site !== undefined) {
    const isOwn = site === 'same-origin' || (site === 'none' && !isChange);
    return isOwn ? null : refusal(`Sec-Fetch-Site: ${String(site).slice(0, 40)}`);
  }
  if (!isChange) return null;
  if (origin === undefined) return refusal('Sec-Fetch-Site is missing');
  return isOriginOf(origin, host) ? null : refusal('Origin is another');
}

function isOriginOf(origin: string, host: string | undefined): boolean {
  return URL.canParse(origin) && host !== undefined && new URL(origin).host === host.toLowerCase();
}

function refusal(details: string): Error {
  return inputError('insufficient_scope', 'A session is good for requests of the console only', details);
}
