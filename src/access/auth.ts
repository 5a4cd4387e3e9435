import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { inputError } from '../base/errors.ts';
import type { System } from '../context.ts';
import { type Caller, isRefusal, type KeyRefusal } from '../domain/caller.ts';
import { insufficient, type NeededScope } from '../http/caller.ts';
import { verifySession } from './console-session.ts';
import { crossOriginProblem, sessionCookie } from './session-cookie.ts';
import { inTime, KeyCache, LookupTurns, verifyKey } from './verify-key.ts';

/**
 * Checks the key before the body is read. Most routes look it up for each request, so a revoked key
 * is refused at once. Routes of single records and profiles may be a second behind.
 *
 * Without a key, a console session has the rights of its key if the request comes from the console.
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
