import type { FastifyInstance, FastifyRequest, FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { FailedLogins } from '../../access/admin-login.ts';
import { signIn, signInByLink, verifySession } from '../../access/console-session.ts';
import { type Caller, isRefusal, staticKeyId } from '../../access/verify-key.ts';
import { withExamples } from '../../api/schema.ts';
import { callerRecord, environmentName, sessionItem } from '../../api/session.ts';
import type { System } from '../../context.ts';
import { inputError, TransientError } from '../../domain/errors.ts';
import { readPackage } from '../../package-root.ts';
import { endSession, listSessions, moveSession, type SessionOwner } from '../../postgres/stores/api-keys.ts';
import { findEnvironment, listEnvironments } from '../../postgres/stores/environments.ts';
import { compileSchema, ruled, throwProblems, worded } from '../../validation.ts';
import { callerOf } from '../plugins/auth.ts';
import { bodyBytes, readJsonObject } from '../plugins/json-body.ts';
import { bodyHeaders } from '../request-headers.ts';
import { errorAnswers, refusals } from '../schemas/answers.ts';
import { renderCaller, type SessionItem } from '../schemas/console-session.ts';
import { clearSessionCookie, crossOriginProblem, setSessionCookie } from '../session-cookie.ts';

const showSchema = {
  operationId: 'showCaller',
  summary: 'Say who calls',
  description: 'The environment and the scopes of the key, or of the session that the cookie stands for.',
  tags: ['keys'],
  response: {
    200: { description: 'Who calls.', content: { 'application/json': { schema: callerRecord.ref } } },
    ...refusals(),
  },
} satisfies FastifySchema;

const wanted = Type.Object(
  { environment: environmentName('Name of an environment.') },
  { additionalProperties: false, description: 'What to look at.' },
);

const moveSchema = {
  operationId: 'chooseEnvironment',
  summary: 'Look at another environment',
  description: 'For a session that was begun with ADMIN_KEY, or by a link of the command line.',
  tags: ['keys'],
  headers: Type.Object(bodyHeaders),
  body: {
    content: {
      'application/json': withExamples(wanted, {
        staging: { summary: 'The environment staging', value: { environment: 'staging' } },
      }),
    },
  },
  response: {
    200: {
      description: 'The session looks at it.',
      content: { 'application/json': { schema: callerRecord.ref } },
    },
    ...refusals(
      'invalid_json',
      'missing_field',
      'invalid_field',
      'not_found',
      'upload_too_slow',
      'payload_too_large',
      'unsupported_media_type',
    ),
  },
} satisfies FastifySchema;

const signOutSchema = {
  operationId: 'signOut',
  summary: 'Sign out of the console',
  description:
    'Ends the session that the cookie stands for. A request with a key has none, and changes nothing.',
  tags: ['keys'],
  response: { 204: { type: 'null', description: 'It is ended.' }, ...refusals() },
} satisfies FastifySchema;

const listSchema = {
  operationId: 'listSessions',
  summary: 'List sessions of the console',
  description:
    'Those of the environment that are open and were begun with the same key; for an administrator, all.',
  tags: ['keys'],
  response: {
    200: {
      description: 'Newest first.',
      content: { 'application/json': { schema: Type.Array(sessionItem.ref) } },
    },
    ...refusals(),
  },
} satisfies FastifySchema;

const noSuchSession = 'there is no such session';

const sessionId = Type.String({ description: 'Id of the session.', examples: ['q3Zt0bV1kXyA'] });

const sessionParameters = Type.Object({
  session_id: worded(
    ruled(sessionId, (text) => (/^[\w-]{12}$/.test(text) ? null : noSuchSession)),
    { says: { code: 'not_found', message: noSuchSession, details: 'session_id' } },
  ),
});

const endSchema = {
  operationId: 'endSession',
  summary: 'End a session of the console',
  description: 'Its cookie is refused from now on. Those that the list shows can be ended.',
  tags: ['keys'],
  params: sessionParameters,
  response: {
    204: { type: 'null', description: 'It is ended.' },
    ...refusals('invalid_field', 'not_found', 'route_not_found'),
  },
} satisfies FastifySchema;

/** Who is signed in, until when, and where else. Signing in is `sign-in.ts`. */
export function consoleSession(app: FastifyInstance, system: System): void {
  const { db, config } = system;
  const { version } = readPackage();
  const any = { config: { scope: 'any' } } as const;
  app.get('/v1/console/session', { ...any, schema: showSchema }, async (request, reply) => {
    const caller = callerOf(request);
    return reply.send(renderCaller(caller, await environmentsOf(system, caller), version));
  });
  app.delete('/v1/console/session', { ...any, schema: signOutSchema }, async (request, reply) => {
    const { session, environment } = callerOf(request);
    if (session !== undefined) await endSession(db, environment.environmentId, session.sessionId);
    clearSessionCookie(request, reply, config.publicUrl);
    return reply.code(204).send();
  });
  app.get('/v1/console/sessions', { ...any, schema: listSchema }, async (request, reply) => {
    const { environment, session } = callerOf(request);
    const found = await listSessions(db, environment.environmentId, ownerOf(request));
    const render = (each: (typeof found)[number]): SessionItem => ({
      session_id: each.sessionId,
      holder: each.holder,
      key_id: each.keyId,
      client: each.client,
      created_at: each.createdAt.toISOString(),
      expires_at: each.expiresAt.toISOString(),
      is_own: each.sessionId === session?.sessionId,
    });
    return reply.send(found.map(render));
  });
  app.delete('/v1/console/sessions/:session_id', { ...any, schema: endSchema }, async (request, reply) => {
    const { session_id } = request.params as { session_id: string };
    await endSession(db, callerOf(request).environment.environmentId, session_id, ownerOf(request));
    return reply.code(204).send();
  });
}

/** In a scope with small JSON bodies. */
export function chooseEnvironment(scope: FastifyInstance, system: System): void {
  const { version } = readPackage();
  const findProblems = compileSchema(wanted);
  const options = { config: { scope: 'any' }, schema: moveSchema } as const;
  scope.put('/v1/console/session', options, async (request, reply) => {
    const wish = readJsonObject(bodyBytes(request));
    throwProblems(findProblems(wish));
    const { environment: name } = wish as { environment: string };
    const caller = callerOf(request);
    if (caller.session?.isAdmin !== true) {
      const details = 'needed: a session begun with ADMIN_KEY';
      throw inputError('insufficient_scope', 'The key does not allow this', details);
    }
    const environment = await findEnvironment(system.db, name);
    if (environment === null) throw inputError('not_found', 'there is no such environment', 'environment');
    await moveSession(system.db, caller.session.sessionId, environment.environmentId);
    const moved = { ...caller, environment };
    return reply.send(renderCaller(moved, await environmentsOf(system, moved), version));
  });
}

/** Whose sessions alone a caller sees; undefined: all. */
function ownerOf(request: FastifyRequest): SessionOwner | undefined {
  const { session, keyId } = callerOf(request);
  if (session?.isAdmin === true) return undefined;
  return keyId === staticKeyId ? { holder: 'static_key', keyId: null } : { holder: 'key', keyId };
}

/** Names of the environments that the caller may look at. */
async function environmentsOf({ db }: System, caller: Caller): Promise<readonly string[]> {
  if (caller.session?.isAdmin !== true) return [caller.environment.name];
  return (await listEnvironments(db)).map(({ name }) => name);
}

const body = Type.Object(
  {
    key: Type.Optional(Type.String({ description: 'An API key, API_KEY or ADMIN_KEY.', maxLength: 400 })),
    link: Type.Optional(Type.String({ description: 'The token of a one-time link.', maxLength: 100 })),
    environment: Type.Optional(environmentName('For ADMIN_KEY: what to look at; by default `default`.')),
  },
  { additionalProperties: false, description: 'A key or a link.' },
);

const signInSchema = {
  operationId: 'signIn',
  summary: 'Sign in to the console',
  description:
    'Changes a key, or a one-time link of the command line, for the cookie of a session. A request with the cookie and without a key may do what the key may, if it comes from the console itself: changes want `Sec-Fetch-Site: same-origin`.',
  tags: ['keys'],
  headers: Type.Object(bodyHeaders),
  body: {
    content: {
      'application/json': withExamples(body, { key: { summary: 'With a key', value: { key: 'slk_…' } } }),
    },
  },
  response: {
    200: {
      description: 'The session has begun. The cookie is in `Set-Cookie`.',
      content: { 'application/json': { schema: callerRecord.ref } },
    },
    ...errorAnswers(
      'invalid_json',
      'missing_field',
      'invalid_field',
      'invalid_api_key',
      'insufficient_scope',
      'not_found',
      'upload_too_slow',
      'payload_too_large',
      'unsupported_media_type',
      'rate_limited',
      'internal_error',
      'unavailable',
    ),
  },
} satisfies FastifySchema;

/** Failures are counted by address, as those of every login. */
export function signInRoute(scope: FastifyInstance, system: System): void {
  const { db, config } = system;
  const failures = new FailedLogins();
  const findProblems = compileSchema(body);
  const { version } = readPackage();
  scope.post('/v1/console/sign_in', { schema: signInSchema }, async (request, reply) => {
    const problem = crossOriginProblem(request);
    if (problem !== null) throw problem;
    const seconds = failures.wait(request.ip);
    if (seconds > 0) {
      reply.header('retry-after', String(seconds));
      throw inputError('rate_limited', 'Too many sign-ins failed; try again later', `${seconds} s`);
    }
    const wish = readJsonObject(bodyBytes(request));
    throwProblems(findProblems(wish));
    const { key, link, environment } = wish as { key?: string; link?: string; environment?: string };
    if (key === undefined && link === undefined) {
      throw inputError('missing_field', 'A key or a link is needed', 'key');
    }
    const client = request.headers['user-agent'] ?? '';
    const signedIn =
      key === undefined
        ? await signInByLink(db, link ?? '', client)
        : await signIn(db, config, { key: key.trim(), environment, client });
    if (signedIn === null) {
      failures.failed(request.ip);
      reply.header('www-authenticate', 'Token');
      const details = key === undefined ? 'link: used or expired' : 'key: unknown, revoked or expired';
      throw inputError('invalid_api_key', 'Unauthorized - Invalid API key', details);
    }
    failures.succeeded(request.ip);
    const caller = await verifySession(db, config, signedIn.cookie);
    if (isRefusal(caller)) throw new TransientError('the session ended as it began');
    setSessionCookie(request, reply, signedIn.cookie, config.publicUrl);
    return reply.send(renderCaller(caller, await environmentsOf(system, caller), version));
  });
}
