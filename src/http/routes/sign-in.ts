import type { FastifyInstance, FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { FailedLogins } from '../../access/admin-login.ts';
import { signIn, signInByLink, verifySession } from '../../access/console-session.ts';
import { isRefusal } from '../../access/verify-key.ts';
import { withExamples } from '../../api/schema.ts';
import { callerRecord, environmentName } from '../../api/session.ts';
import type { System } from '../../context.ts';
import { inputError, TransientError } from '../../domain/errors.ts';
import { readPackage } from '../../package-root.ts';
import { compileSchema, throwProblems } from '../../validation.ts';
import { bodyBytes, readJsonObject } from '../plugins/json-body.ts';
import { bodyHeaders } from '../request-headers.ts';
import { errorAnswers } from '../schemas/answers.ts';
import { renderCaller } from '../schemas/console-session.ts';
import { crossOriginProblem, setSessionCookie } from '../session-cookie.ts';
import { environmentsOf } from './console-session.ts';

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
