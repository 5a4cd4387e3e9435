import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { inputError } from '../base/errors.ts';
import type { System } from '../context.ts';
import { type Caller, isRefusal, type KeyRefusal } from '../domain/caller.ts';
import { insufficient, type NeededScope } from '../http/caller.ts';
import { verifySession } from './console-session.ts';
import { crossOriginProblem, sessionCookie } from './session-http.ts';
import { inTime, KeyCache, LookupTurns, verifyKey } from './verify-key.ts';

/**
 * Checks the key or the session cookie before the body is read. Most routes refuse a revoked key at
 * once. The routes of single records and profiles cache keys for a second.
 */
export function addAuth(app: FastifyInstance, system: System): void {
  const { db, config, acts } = system;
  const turns = new LookupTurns();
  const verify = (header: string): Promise<Caller | KeyRefusal> =>
    inTime(verifyKey(db, config.apiKey, header, turns));
  const verifyCookie = (cookie: string): Promise<Caller | KeyRefusal> =>
    inTime(verifySession(system, cookie, turns));
  const cache = new KeyCache(verify);
  const admitted = (
    request: FastifyRequest,
    reply: FastifyReply,
    caller: Caller | KeyRefusal,
    scope: NeededScope,
  ): Error | undefined => {
    if (isRefusal(caller) && caller.refused !== 'missing')
      acts.refused({ action: 'key.refused', reason: caller.refused, address: request.ip });
    return admit(request, reply, caller, scope);
  };
  app.decorateRequest('caller', null);
  app.decorateRequest('keyRefusal', null);
  app.decorate('admitKey', async (request, reply, key) => {
    const result = cache.get(key) ?? (await cache.find(key));
    const problem = admitted(request, reply, result, 'ingest') ?? app.countCall(request, reply);
    if (problem !== undefined) throw problem;
  });
  // A callback, unlike a promise, admits a cached caller in the same turn of the event loop.
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
      const lookup = problem === null ? verifyCookie(cookie) : null;
      if (lookup === null) done(problem ?? undefined);
      else lookup.then((caller) => done(admitted(request, reply, caller, scope)), done);
      return;
    }
    const isCached = scope === 'ingest' || trustsKnownKeys === true;
    const cachedCaller = isCached ? cache.get(header) : null;
    if (cachedCaller !== null) {
      done(admitted(request, reply, cachedCaller, scope));
      return;
    }
    const lookup = isCached ? cache.find(header) : verify(header);
    lookup.then((caller) => done(admitted(request, reply, caller, scope)), done);
  });
}

function admit(
  request: FastifyRequest,
  reply: FastifyReply,
  caller: Caller | KeyRefusal,
  scope: NeededScope,
): Error | undefined {
  if (isRefusal(caller)) {
    request.keyRefusal = caller;
    reply.header('www-authenticate', 'Token');
    if (caller.sentence !== undefined) return inputError('invalid_api_key', caller.sentence, 'session');
    return inputError('invalid_api_key', 'Unauthorized - Invalid API key', refusals[caller.refused]);
  }
  const expected = request.headers['sluice-environment'];
  if (caller.session !== undefined && expected !== undefined && expected !== caller.environment.name) {
    return inputError(
      'insufficient_scope',
      'The session looks at another environment now; load the page again',
      `environment: ${caller.environment.name}`,
    );
  }
  request.caller = caller;
  const isOfPage = caller.scopes.includes('browser');
  const isForPages = scope === 'ingest' && request.routeOptions.config.refusesBrowserKeys !== true;
  if (isOfPage ? !isForPages : scope !== 'any' && !caller.scopes.includes(scope)) {
    return insufficient(scope, caller.scopes);
  }
  return request.server.checkOrigin(request, reply);
}

const expectedHeader = 'the header Authorization: Token <API_KEY>';
const notKnown = 'the key is unknown, revoked or expired';

/**
 * Texts of refusals. Three reasons have the same text, so that nobody can find out which keys
 * exist.
 */
const refusals: Readonly<Record<KeyRefusal['refused'], string>> = {
  missing: `${expectedHeader} is missing`,
  malformed: `not of the form that is expected: ${expectedHeader} (or Bearer, or the key alone), a key that begins with slk_`,
  unknown: notKnown,
  revoked: notKnown,
  expired: notKnown,
};
