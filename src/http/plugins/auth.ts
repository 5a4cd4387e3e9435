import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Environment } from '../../access/environments.ts';
import { KeyCache } from '../../access/key-cache.ts';
import type { Scope } from '../../access/scopes.ts';
import { type Caller, verifyKey } from '../../access/verify-key.ts';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import { RECORD_DEADLINE_MS } from '../../domain/limits.ts';
import { inTime } from '../in-time.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before the handler runs, on every route that names a scope. */
    caller: Caller | null;
  }
  interface FastifyContextConfig {
    /** What the key must allow. Every route that touches data names one. */
    scope?: Scope;
  }
}

/**
 * Looks at the key before anything of the body is read. Every request has it looked up, so that a key is refused from
 * the moment it is revoked; except single records, of which there are too many: they may be a second behind.
 */
export function addAuth(app: FastifyInstance, { db, config }: System): void {
  const verify = (header: string): Promise<Caller | null> =>
    inTime(verifyKey(db, config.apiKey, header), RECORD_DEADLINE_MS);
  const cache = new KeyCache(verify);
  app.decorateRequest('caller', null);
  // With a callback: where the caller is known, the request goes on in the same turn of the event loop.
  app.addHook('onRequest', (request, reply, done) => {
    const { scope } = request.routeOptions.config;
    if (scope === undefined) {
      done();
      return;
    }
    const header = request.headers.authorization ?? '';
    const cached = scope === 'ingest';
    const known = cached ? cache.get(header) : null;
    if (known !== null) {
      done(admit(request, reply, known, scope));
      return;
    }
    const asked = cached ? cache.find(header) : verify(header);
    asked.then((caller) => done(admit(request, reply, caller, scope)), done);
  });
}

/** Lets the caller in, or gives the reason why not. */
function admit(
  request: FastifyRequest,
  reply: FastifyReply,
  caller: Caller | null,
  scope: Scope,
): Error | undefined {
  request.caller = caller;
  if (caller === null) {
    reply.header('www-authenticate', 'Token');
    const details = 'the header Authorization: Token <API_KEY>';
    return inputError('invalid_api_key', 'Unauthorized - Invalid API key', details);
  }
  return caller.scopes.includes(scope) ? undefined : insufficient(scope, caller.scopes);
}

/** The environment that the caller's key opens: the only one whose data the request may touch. */
export function callerEnvironment(request: FastifyRequest): Environment {
  return caller(request).environment;
}

export function environmentId(request: FastifyRequest): number {
  return caller(request).environment.environmentId;
}

/** Public id of the key. */
export function callerKeyId(request: FastifyRequest): string {
  return caller(request).keyId;
}

/** For what takes more than the route's own scope. @throws InputError `insufficient_scope`. */
export function requireScope(request: FastifyRequest, scope: Scope): void {
  const { scopes } = caller(request);
  if (!scopes.includes(scope)) throw insufficient(scope, scopes);
}

function caller(request: FastifyRequest): Caller {
  if (request.caller === null) throw new Error(`the route ${request.routeOptions.url} names no scope`);
  return request.caller;
}

function insufficient(scope: Scope, scopes: readonly Scope[]): Error {
  const details = `needed: ${scope}; the key has: ${scopes.join(', ')}`;
  return inputError('insufficient_scope', 'The key does not allow this', details);
}
