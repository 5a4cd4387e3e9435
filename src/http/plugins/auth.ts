import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Caller, isRefusal, KeyCache, type KeyRefusal, verifyKey } from '../../access/verify-key.ts';
import type { System } from '../../context.ts';
import { inputError, TransientError } from '../../domain/errors.ts';
import { RECORD_DEADLINE_MS } from '../../domain/limits.ts';
import type { Scope } from '../../domain/scope.ts';
import type { Environment } from '../../postgres/stores/environments.ts';

type NeededScope = Scope | 'any';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before the handler runs, on every route that names a scope. */
    caller: Caller | null;
    /** Why there is none, for the log; null before anybody has looked. */
    keyRefusal: KeyRefusal | null;
  }
  interface FastifyContextConfig {
    /** What the key must allow; `any`: nothing in particular. Every route that touches data names one. */
    scope?: NeededScope;
    /** A key that was good a second ago is good here: the route is asked thousands of times a second. */
    trustsKnownKeys?: true;
  }
}

/**
 * Looks at the key before anything of the body is read. Every request has it looked up, so that a key is refused from
 * the moment it is revoked; except for single records and profiles, of which there are too many: they may be a second
 * behind.
 */
export function addAuth(app: FastifyInstance, { db, config }: System): void {
  const verify = (header: string): Promise<Caller | KeyRefusal> =>
    inTime(verifyKey(db, config.apiKey, header), RECORD_DEADLINE_MS);
  const cache = new KeyCache(verify);
  app.decorateRequest('caller', null);
  app.decorateRequest('keyRefusal', null);
  // With a callback: where the caller is known, the request goes on in the same turn of the event loop.
  app.addHook('onRequest', (request, reply, done) => {
    const { scope, trustsKnownKeys } = request.routeOptions.config;
    if (scope === undefined) {
      done();
      return;
    }
    const header = request.headers.authorization ?? '';
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

/** Lets the caller in, or gives the reason why not. */
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
  request.caller = found;
  if (scope === 'any' || found.scopes.includes(scope)) return undefined;
  return insufficient(scope, found.scopes);
}

const wanted = 'the header Authorization: Token <API_KEY>';
const notKnown = 'the key is unknown, revoked or expired';

/** What a caller learns. */
const refusals: Readonly<Record<KeyRefusal['refused'], string>> = {
  missing: `${wanted} is missing`,
  malformed: `not of the form that is expected: ${wanted} (or Bearer, or the key alone), a key that begins with slk_`,
  unknown: notKnown,
  revoked: notKnown,
  expired: notKnown,
};

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

/** Waits for an answer that may never come: a database that is frozen breaks no connection. */
export async function inTime<T>(answer: Promise<T>, deadlineMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TransientError('the database does not answer')), deadlineMs);
  });
  // Whatever becomes of it later is nobody's concern any more.
  answer.catch(() => undefined);
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
