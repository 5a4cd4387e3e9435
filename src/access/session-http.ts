import type { FastifyReply, FastifyRequest } from 'fastify';
import ipaddr from 'ipaddr.js';
import { type Static, Type } from 'typebox';
import { inputError, TransientError } from '../base/errors.ts';
import { CONSOLE_SESSION_MS } from '../base/limits.ts';
import { readPackage } from '../base/package-root.ts';
import type { System } from '../context.ts';
import { type Caller, isRefusal } from '../domain/caller.ts';
import { callerOf, requireAdmin } from '../http/caller.ts';
import { isForwardedTls } from '../http/page.ts';
import { FailedLogins } from '../http/plugins/limits.ts';
import { type Route, route } from '../http/route.ts';
import { object } from '../http/schema.ts';
import { closeSession } from './acts.ts';
import { callerRecord, environmentName } from './api.ts';
import { listReachable, signIn, signInByLink, verifySession } from './console-session.ts';
import { findEnvironment } from './environment-store.ts';
import { moveSession } from './key-store.ts';

/* Only requests of the console itself may use the cookie of its session. */

const name = 'sluice_session';
const pattern = new RegExp(`(?:^|;)\\s*${name}=([\\w-]{43})\\s*(?:;|$)`);

export function sessionCookie({ headers: { cookie } }: FastifyRequest): string | null {
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

/**
 * True if PUBLIC_URL or the proxy's header shows that the browser uses TLS. A forged header can
 * only restrict the cookie to TLS.
 */
function isHttps(request: FastifyRequest, publicUrl: string | null): boolean {
  return publicUrl?.startsWith('https:') === true || isForwardedTls(request);
}

/**
 * True if the request comes from this machine. A request through a proxy does not count, because
 * anybody may be behind the proxy.
 */
export function isOfThisMachine({ ip, socket, headers }: FastifyRequest): boolean {
  const isForwarded = (headers['x-forwarded-for'] ?? headers.forwarded) !== undefined;
  return !isForwarded && [ip, socket.remoteAddress ?? ''].every(isLoopback);
}

function isLoopback(address: string): boolean {
  return ipaddr.isValid(address) && ipaddr.process(address).range() === 'loopback';
}

const reading = new Set(['GET', 'HEAD']);

/**
 * `SameSite=Strict` is not enough, because it allows requests from other ports of the host.
 * Browsers send `Sec-Fetch-Site` only over trusted connections. They send `Origin` with every
 * change.
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

async function renderCaller(system: System, caller: Caller): Promise<Static<typeof callerRecord.schema>> {
  const { environment, scopes, keyId, session } = caller;
  return {
    environment: environment.name,
    environments: [...(await listReachable(system, caller))],
    scopes: [...scopes],
    key_id: keyId,
    is_admin: session?.isAdmin === true,
    holder: session?.holder ?? null,
    session_id: session?.sessionId ?? null,
    expires_at: session?.expiresAt.toISOString() ?? null,
    version: readPackage().version,
  };
}

/** The operator can use the console even under overload. */
const alwaysServed = { alwaysServed: true } as const;

const show = route({
  at: 'GET /v1/console/session',
  operationId: 'showCaller',
  summary: 'Show the caller',
  description: 'Returns the environment and the scopes of the key, or of the session that the cookie names.',
  access: 'any',
  config: alwaysServed,
  answer: { description: 'The caller.', schema: callerRecord.ref },
  handle: async ({ system, request }) => renderCaller(system, callerOf(request)),
});

const move = route({
  at: 'PUT /v1/console/session',
  operationId: 'chooseEnvironment',
  summary: 'Switch to another environment',
  description:
    'Switches the session to another environment of the caller. Sessions of keys have only one environment.',
  access: 'any',
  json: {
    schema: object('The environment.', { environment: environmentName('Name of the environment.') }),
    examples: { staging: { summary: 'The environment staging', value: { environment: 'staging' } } },
  },
  answer: { description: 'The caller, in the new environment.', schema: callerRecord.ref },
  refuses: ['not_found'],
  handle: async ({ system, request, body }) => {
    const caller = callerOf(request);
    const names = await listReachable(system, caller);
    if (names.length < 2) requireAdmin(request);
    const environment = names.includes(body.environment)
      ? await findEnvironment(system.db, body.environment)
      : null;
    if (environment === null) throw inputError('not_found', 'There is no such environment', 'environment');
    if (caller.session !== undefined) {
      await moveSession(system.db, caller.session.sessionId, environment.environmentId);
    }
    const moved = await verifySession(system, sessionCookie(request) ?? '');
    return renderCaller(system, isRefusal(moved) ? { ...caller, environment } : moved);
  },
});

const signOut = route({
  at: 'DELETE /v1/console/session',
  operationId: 'signOut',
  summary: 'Sign out of the console',
  description: 'Ends the session that the cookie names. A request with a key changes nothing.',
  access: 'any',
  answer: { status: 204, description: 'The session is ended.' },
  handle: async ({ system, request, reply, environment }) => {
    const { session } = callerOf(request);
    if (session !== undefined) await closeSession(system, environment, session.sessionId);
    clearSessionCookie(request, reply, system.config.publicUrl);
  },
});

const signInBody = object('A key or a link.', {
  key: Type.Optional(Type.String({ description: 'An API key, API_KEY or ADMIN_KEY.', maxLength: 400 })),
  link: Type.Optional(Type.String({ description: 'Token of a one-time link.', maxLength: 100 })),
  environment: Type.Optional(
    environmentName('For ADMIN_KEY, the environment of the session. Default: `default`.'),
  ),
});

const signInRoute = route({
  at: 'POST /v1/console/sign_in',
  operationId: 'signIn',
  summary: 'Sign in to the console',
  description:
    'Exchanges a key, or a one-time link from the command line, for the cookie of a session. A request with the cookie and without a key may do what the key may, if it comes from the console itself: changes require `Sec-Fetch-Site: same-origin`.',
  access: 'open',
  config: alwaysServed,
  security: [],
  json: { schema: signInBody, examples: { key: { summary: 'With a key', value: { key: 'slk_…' } } } },
  answer: { description: 'The session has begun. The cookie is in `Set-Cookie`.', schema: callerRecord.ref },
  refuses: [
    'invalid_api_key',
    'insufficient_scope',
    'not_found',
    'rate_limited',
    'internal_error',
    'unavailable',
  ],
  prepare: () => new FailedLogins(),
  handle: async ({ system, prepared: failures, request, reply, body: { key, link, environment } }) => {
    const { config } = system;
    const problem = crossOriginProblem(request);
    if (problem !== null) throw problem;
    const seconds = failures.wait(request.ip);
    if (seconds > 0) {
      system.acts.refused({ action: 'sign_in.refused', reason: 'too_many', address: request.ip });
      reply.header('retry-after', String(seconds));
      throw inputError('rate_limited', 'Too many sign-ins failed; try again later', `${seconds} s`);
    }
    if (key === undefined && link === undefined) {
      throw inputError('missing_field', 'A key or a link is needed', 'key');
    }
    const isConfined = system.signInWays.some((way) => way.confinesLinks?.(config) === true);
    if (key === undefined && isConfined && !isOfThisMachine(request)) {
      const sentence = 'The link works only in a browser on the machine of the service';
      throw inputError('insufficient_scope', sentence, 'link');
    }
    const client = request.headers['user-agent'] ?? '';
    const signedIn =
      key === undefined
        ? await signInByLink(system, link ?? '', client)
        : await signIn(system, config, { key: key.trim(), environment, client });
    if (signedIn === null) {
      failures.failed(request.ip);
      const reason = key === undefined ? 'link' : 'key';
      system.acts.refused({ action: 'sign_in.refused', reason, address: request.ip });
      reply.header('www-authenticate', 'Token');
      const details = key === undefined ? 'link: used or expired' : 'key: unknown, revoked or expired';
      throw inputError('invalid_api_key', 'Unauthorized - Invalid API key', details);
    }
    const caller = await verifySession(system, signedIn.cookie);
    if (isRefusal(caller)) throw new TransientError('the session ended as it began');
    setSessionCookie(request, reply, signedIn.cookie, config.publicUrl);
    return renderCaller(system, caller);
  },
});

export const sessionRoutes: readonly Route[] = [show, move, signOut, signInRoute];
