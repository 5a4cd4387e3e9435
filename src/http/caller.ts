import type { FastifyReply, FastifyRequest } from 'fastify';
import { inputError } from '../base/errors.ts';
import type { Actor } from '../domain/act.ts';
import type { Caller, Environment, KeyRefusal, Scope } from '../domain/caller.ts';
import type { Origin } from '../domain/task.ts';

export type NeededScope = Scope | 'any';

declare module 'fastify' {
  interface FastifyRequest {
    /** The authenticated caller. Set before the handler runs, if the route has a scope. */
    caller: Caller | null;
    keyRefusal: KeyRefusal | null;
  }
  interface FastifyContextConfig {
    /** `any` accepts every key. Every route that uses data requires a scope. */
    scope?: NeededScope;
    /** Accepts a key that was valid a second ago, because the route gets many calls. */
    trustsKnownKeys?: true;
    /**
     * The body may contain the key. Without an Authorization header, the handler calls `admitKey`.
     */
    keyInBody?: true;
    refusesBrowserKeys?: true;
  }
  interface FastifyInstance {
    /** Admits a caller whose key may send records. @throws InputError */
    admitKey: (request: FastifyRequest, reply: FastifyReply, key: string) => Promise<void>;
  }
}

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
  const caller = callerOf(request);
  return { kind: kindOf(caller), name: caller.keyId };
}

export function callerActor({ caller, ip }: FastifyRequest): Actor {
  if (caller === null) return { kind: 'anonymous', name: null, address: ip };
  const { keyId: name, session } = caller;
  return { kind: kindOf(caller), name, sessionId: session?.sessionId ?? null, address: ip };
}

function kindOf({ session }: Caller): 'api_key' | 'person' {
  return (session?.subject ?? null) === null ? 'api_key' : 'person';
}

export function requireScope(request: FastifyRequest, scope: Scope): void {
  const { scopes } = callerOf(request);
  if (!scopes.includes(scope)) throw insufficient(scope, scopes);
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

export function insufficient(scope: NeededScope, scopes: readonly Scope[]): Error {
  const details = `needed: ${scope}; the key has: ${scopes.join(', ')}`;
  return inputError('insufficient_scope', 'The key does not allow this', details);
}
