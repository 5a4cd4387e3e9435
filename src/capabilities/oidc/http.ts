import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { closeSession } from '../../access/acts.ts';
import { openSession } from '../../access/console-session.ts';
import { findEnvironment } from '../../access/environment-store.ts';
import { digestKey, matchesDigest } from '../../access/key-store.ts';
import {
  clearSessionCookie,
  crossOriginProblem,
  sessionCookie,
  setSessionCookie,
} from '../../access/session-http.ts';
import { inputError } from '../../base/errors.ts';
import type { System } from '../../context.ts';
import { defaultEnvironmentName } from '../../domain/caller.ts';
import { callerOf } from '../../http/caller.ts';
import { FailedLogins } from '../../http/plugins/limits.ts';
import { lenientQuery } from '../../http/plugins/validation.ts';
import { type Route, route } from '../../http/route.ts';
import { object } from '../../http/schema.ts';
import { describeMismatch } from './access.ts';
import { claimsOf, clientOf, environmentsOf } from './admit.ts';
import { providerRecord, signInStep } from './api.ts';
import { ATTEMPT_MS, type Attempt, beginAttempt, readAttempt } from './attempt.ts';
import { problems } from './problems-api.ts';
import { authorizationUrl, endSessionUrl, exchangeCode, type Identity, ProviderProblem } from './provider.ts';
import { type OidcSettings, readSettings } from './settings.ts';
import { findSession, insertSession, listGrants, spendState } from './store.ts';
import { openTokens, sealTokens } from './tokens.ts';

const alwaysServed = { alwaysServed: true } as const;

function requireSettings({ config }: System): OidcSettings {
  const settings = readSettings(config);
  if (settings !== null) return settings;
  throw inputError('not_found', 'Sign-in by OpenID Connect is off; set OIDC_ISSUER', 'OIDC_ISSUER');
}

const showProvider = route({
  at: 'GET /v1/console/oidc',
  operationId: 'showSignInProvider',
  summary: 'Show the provider for sign-in',
  description: 'Tells with which provider of OpenID Connect people sign in to the console.',
  access: 'open',
  config: alwaysServed,
  security: [],
  answer: { description: 'The provider.', schema: providerRecord.ref },
  refuses: ['internal_error', 'unavailable'],
  handle: async ({ system: { config } }) => {
    const settings = readSettings(config);
    return { provider: settings === null ? null : new URL(settings.issuer).host };
  },
});

const attemptName = 'sluice_sign_in';
const attemptPattern = new RegExp(`(?:^|;)\\s*${attemptName}=([\\w.-]{1,2000})\\s*(?:;|$)`);

function findAttempt(settings: OidcSettings, { headers: { cookie = '' } }: FastifyRequest): Attempt | null {
  return readAttempt(settings, attemptPattern.exec(cookie)?.[1] ?? '');
}

function setAttempt(reply: FastifyReply, { publicUrl }: OidcSettings, value: string, seconds: number): void {
  // `Lax`, because the provider's site redirects the browser back with this cookie.
  const attributes = [`${attemptName}=${value}`, 'Path=/', `Max-Age=${seconds}`, 'HttpOnly', 'SameSite=Lax'];
  if (publicUrl.startsWith('https:')) attributes.push('Secure');
  reply.header('set-cookie', attributes.join('; '));
}

const beginBody = object('Where the sign-in leads.', {
  path: Type.Optional(
    Type.String({
      description: 'Path below /console that is shown afterwards. Default: the overview.',
      pattern: "^(/[\\w.~!$&'()*+,;=:@%-]+)*(\\?[\\w.~!$&'()*+,;=:@%/?-]*)?$",
      maxLength: 500,
    }),
  ),
});

const begin = route({
  at: 'POST /v1/console/oidc/sign_in',
  operationId: 'beginSignIn',
  summary: 'Begin a sign-in by OpenID Connect',
  description:
    'Returns the address at the provider where the person signs in. The provider sends the browser back to `/v1/console/oidc/callback`. Only the console may call it: `Sec-Fetch-Site: same-origin`.',
  access: 'open',
  config: alwaysServed,
  security: [],
  json: { schema: beginBody, examples: { jobs: { summary: 'Back to the jobs', value: { path: '/jobs' } } } },
  answer: { description: 'The address. The attempt is in `Set-Cookie`.', schema: signInStep.ref },
  refuses: ['insufficient_scope', 'not_found', 'rate_limited', 'internal_error', 'unavailable'],
  handle: async ({ system, request, reply, body: { path = '' } }) => {
    const problem = crossOriginProblem(request);
    if (problem !== null) throw problem;
    const settings = requireSettings(system);
    const { attempt, cookie } = beginAttempt(settings, path);
    try {
      const url = await authorizationUrl(system.config, settings, attempt);
      setAttempt(reply, settings, cookie, ATTEMPT_MS / 1_000);
      return { url, problem: null };
    } catch (error) {
      if (!(error instanceof ProviderProblem)) throw error;
      system.log.warn({ reason: error.reason }, 'a sign-in by OpenID Connect failed');
      return { url: null, problem: problems[error.code] };
    }
  },
});

const finish = route({
  at: 'GET /v1/console/oidc/callback',
  operationId: 'finishSignIn',
  summary: 'Finish a sign-in by OpenID Connect',
  description:
    'The provider sends the browser here. Begins a session with the scopes that the definitions give to the claims of the person, and leads to the console, which also shows why a sign-in failed.',
  access: 'open',
  config: alwaysServed,
  security: [],
  query: lenientQuery({
    state: Type.Optional(Type.String({ description: 'State of the sign-in.', maxLength: 4_000 })),
  }),
  answer: { status: 302, description: 'The console.', headers: ['Location'] },
  refuses: ['not_found', 'rate_limited', 'internal_error', 'unavailable'],
  prepare: () => new FailedLogins(),
  handle: async ({ system, prepared: failures, request, reply, query: { state = '' } }) => {
    const settings = requireSettings(system);
    const attempt = findAttempt(settings, request);
    setAttempt(reply, settings, '', 0);
    const page = `${settings.publicUrl}/console${attempt?.path ?? ''}`;
    try {
      if (failures.wait(request.ip) > 0) throw new ProviderProblem('often', null);
      const identity = await identify(system, settings, attempt, { state, url: request.url });
      await openConsole(system, settings, identity, request, reply);
      return reply.redirect(page, 302);
    } catch (error) {
      if (!(error instanceof ProviderProblem)) throw error;
      failures.failed(request.ip);
      system.acts.refused({ action: 'sign_in.refused', reason: error.code, address: request.ip });
      system.log.warn({ reason: error.reason, ...error.facts }, 'a sign-in by OpenID Connect failed');
      return reply.redirect(`${page}#sign-in=${error.code}`, 302);
    }
  },
});

/** @throws ProviderProblem */
async function identify(
  { db, config }: System,
  settings: OidcSettings,
  attempt: Attempt | null,
  { state, url }: { readonly state: string; readonly url: string },
): Promise<Identity> {
  if (attempt === null) throw new ProviderProblem('expired', null);
  if (!matchesDigest(state, digestKey(attempt.state))) throw new ProviderProblem('state', null);
  if (!(await spendState(db, attempt.digest, ATTEMPT_MS))) throw new ProviderProblem('replayed', null);
  return exchangeCode(config, settings, attempt, url.slice(url.indexOf('?')));
}

/**
 * Opens a session in the environment `default` or, if the person has no scope there, in the first
 * environment in which they have one.
 * @throws ProviderProblem
 */
async function openConsole(
  system: System,
  settings: OidcSettings,
  identity: Identity,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const { db, config } = system;
  const { subject, fixedClaims, liveClaims, tokens, expiresAt } = identity;
  const grants = await listGrants(db, null);
  const names = environmentsOf(grants, claimsOf(identity));
  const name = names.includes(defaultEnvironmentName) ? defaultEnvironmentName : names[0];
  const environment = name === undefined ? null : await findEnvironment(db, name);
  if (environment === null)
    throw new ProviderProblem('access', null, describeMismatch(grants, claimsOf(identity)));
  const opening = { environmentId: environment.environmentId, holder: 'oidc', subject, expiresAt };
  const { session, cookie } = await openSession(system, opening, request.headers['user-agent'] ?? '');
  await insertSession(db, {
    sessionId: session.sessionId,
    client: clientOf(settings),
    fixedClaims,
    liveClaims,
    tokens: sealTokens(tokens, cookie),
  });
  setSessionCookie(request, reply, cookie, config.publicUrl);
}

const leave = route({
  at: 'POST /v1/console/oidc/sign_out',
  operationId: 'signOutAtProvider',
  summary: 'Sign out of the console and at the provider',
  description: 'Ends the session, and returns the address at the provider that ends the sign-in there.',
  access: 'any',
  answer: { description: 'The address.', schema: signInStep.ref },
  handle: async ({ system, request, reply, environment }) => {
    const { db, config, log } = system;
    const { session } = callerOf(request);
    if (session === undefined) return { url: null, problem: null };
    const settings = readSettings(config);
    const stored = await findSession(db, session.sessionId);
    await closeSession(system, environment, session.sessionId);
    clearSessionCookie(request, reply, config.publicUrl);
    if (settings === null || stored === null) return { url: null, problem: null };
    const tokens = openTokens(stored.tokens, sessionCookie(request) ?? '');
    const url = await endSessionUrl(config, settings, tokens).catch((error: unknown) => {
      if (!(error instanceof ProviderProblem)) throw error;
      log.warn({ reason: error.reason }, 'the provider was not told of a sign-out');
      return null;
    });
    return { url, problem: null };
  },
});

export const oidcRoutes: readonly Route[] = [showProvider, begin, finish, leave];
