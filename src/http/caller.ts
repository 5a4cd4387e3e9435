import type { FastifyReply, FastifyRequest } from 'fastify';
import { inputError } from '../base/errors.ts';
import type { Caller, Environment, KeyRefusal } from '../domain/caller.ts';
import type { Scope } from '../domain/scope.ts';
import type { Origin } from '../domain/task.ts';

export type NeededScope = Scope | 'any';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before the handler of a route with a scope. */
    caller: Caller | null;
    keyRefusal: KeyRefusal | null;
  }
  interface FastifyContextConfig {
    /** Required scope, or `any` for every key. Every route that touches data has one. */
    scope?: NeededScope;
    /** Accepts a key that was valid a second ago, since these routes have many calls. */
    trustsKnownKeys?: true;
    /** The body may have the key. Without an Authorization header the handler calls `admitKey`. */
    keyInBody?: true;
    /** Refuses keys for pages, although it takes records. */
    notOfPages?: true;
  }
  interface FastifyInstance {
    /** Admits a caller by a key that may send records. @throws InputError */
    admitKey: (request: FastifyRequest, reply: FastifyReply, key: string) => Promise<void>;
  }
}

/** Returns the only environment whose data the request may touch. */
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

function hasScope(request: FastifyRequest, scope: Scope): boolean {
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

export function insufficient(scope: NeededScope, scopes: readonly Scope[]): Error {
  const details = `needed: ${scope}; the key has: ${scopes.join(', ')}`;
  return inputError('insufficient_scope', 'The key does not allow this', details);
}
