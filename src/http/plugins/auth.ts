import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Scope } from '../../access/scopes.ts';
import { type Caller, verifyKey } from '../../access/verify-key.ts';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before the handler runs, on every route that names a scope. */
    caller: Caller | null;
  }
  interface FastifyContextConfig {
    /** What the key must allow. Every route names one. */
    scope?: Scope;
  }
}

/** Looks at the key before anything of the body is read. */
export function addAuth(app: FastifyInstance, { db, config }: System): void {
  app.decorateRequest('caller', null);
  app.addHook('onRequest', async (request, reply) => {
    const { scope } = request.routeOptions.config;
    if (scope === undefined) return;
    request.caller = await verifyKey(db, config.apiKey, request.headers.authorization);
    if (request.caller === null) {
      reply.header('www-authenticate', 'Token');
      const details = 'the header Authorization: Token <API_KEY>';
      throw inputError('invalid_api_key', 'Unauthorized - Invalid API key', details);
    }
    if (!request.caller.scopes.includes(scope)) {
      const details = `needed: ${scope}; the key has: ${request.caller.scopes.join(', ')}`;
      throw inputError('insufficient_scope', 'The key does not allow this', details);
    }
  });
}

/** The environment that the caller's key opens: the only one whose data the request may touch. */
export function environmentId(request: FastifyRequest): number {
  if (request.caller === null) throw new Error(`the route ${request.routeOptions.url} names no scope`);
  return request.caller.environment.environmentId;
}
