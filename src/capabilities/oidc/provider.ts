/* Only this module loads `openid-client`. */
import type { Configuration, CustomFetch } from 'openid-client';
import type { Config } from '../../base/config.ts';
import { sendRequest } from '../../base/http-client.ts';
import type { Claims } from './access.ts';
import type { Attempt } from './attempt.ts';
import type { ProblemCode } from './problems-api.ts';
import { isLoopback, type OidcSettings } from './settings.ts';
import type { Tokens } from './tokens.ts';

const connectTimeoutMs = 2_000;
const answerTimeoutMs = 3_000;
const MAX_ANSWER_BYTES = 1_048_576;
const DISCOVERY_MS = 3_600_000;
/** Maximum difference that is accepted between the clocks of the provider and of this machine. */
const CLOCK_TOLERANCE_S = 120;

/** A failed sign-in. `code` selects the message that is shown. */
export class ProviderProblem extends Error {
  readonly code: ProblemCode;
  /** Fields for the log. They contain no personal data. */
  readonly facts: object;

  constructor(code: ProblemCode, cause: unknown, facts: object = {}) {
    super(`sign-in failed: ${code}`, { cause });
    this.code = code;
    this.facts = facts;
  }

  /** Text for the log. It contains no tokens, because the library's messages contain none. */
  get reason(): string {
    const texts: string[] = [this.code];
    for (let at = this.cause; at instanceof Error; at = at.cause) {
      texts.push('error' in at ? `${at.message} (${String(at.error).slice(0, 100)})` : at.message);
    }
    return texts.join(': ');
  }
}

export interface Identity {
  readonly subject: string;
  readonly fixedClaims: Claims;
  readonly liveClaims: Claims;
  readonly tokens: Tokens;
  /**
   * The time at which the access token expires. `null` if the provider does not specify this time.
   */
  readonly expiresAt: Date | null;
}

const load = () => import('openid-client');

interface Discovered {
  readonly at: number;
  readonly configuration: Promise<Configuration>;
}

/** Keyed by configuration, so that two systems in one process share nothing. */
const discovered = new WeakMap<Config, Discovered>();

async function discover(config: Config, settings: OidcSettings): Promise<Configuration> {
  const known = discovered.get(config);
  if (known !== undefined && performance.now() < known.at + DISCOVERY_MS) return known.configuration;
  const configuration = requestDiscovery(settings);
  const entry = { at: performance.now(), configuration };
  discovered.set(config, entry);
  configuration.catch(() => {
    if (discovered.get(config) === entry) discovered.delete(config);
  });
  return configuration;
}

async function requestDiscovery(settings: OidcSettings): Promise<Configuration> {
  const client = await load();
  const { issuer, clientId, clientSecret } = settings;
  return translated(async () => {
    const configuration = await client.discovery(
      new URL(issuer),
      clientId,
      { client_secret: clientSecret, [client.clockTolerance]: CLOCK_TOLERANCE_S },
      undefined,
      {
        [client.customFetch]: request,
        timeout: answerTimeoutMs / 1_000,
        execute: [
          // Checks the signatures even of tokens that are received over TLS.
          client.enableNonRepudiationChecks,
          ...(isLoopback(issuer) ? [client.allowInsecureRequests] : []),
        ],
      },
    );
    // For some services, the library accepts a template as the issuer. All tenants of such a
    // service could then sign in.
    const { issuer: name } = configuration.serverMetadata();
    if (withoutSlash(name) !== withoutSlash(issuer))
      throw new ProviderProblem('issuer', new Error(`the provider calls itself ${name.slice(0, 200)}`));
    return configuration;
  });
}

const withoutSlash = (text: string) => text.replace(/\/$/, '');

/** Our own client limits the size of the response. */
const request: CustomFetch = async (address, { method, headers, body, signal }) => {
  const answer = await sendRequest(new URL(address), {
    method: method === 'POST' ? 'POST' : 'GET',
    headers,
    ...(body == null ? {} : { body: String(body) }),
    reach: 'any',
    connectTimeoutMs,
    answerTimeoutMs,
    signal: signal ?? AbortSignal.timeout(answerTimeoutMs),
  });
  try {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of answer.body) {
      bytes += chunk.length;
      if (bytes > MAX_ANSWER_BYTES) throw new Error('the answer of the provider is too long');
      chunks.push(chunk);
    }
    const known = Object.entries(answer.headers).filter((entry): entry is [string, string] => {
      return entry[1] !== undefined;
    });
    const isEmpty = [204, 205, 304].includes(answer.status);
    return new Response(isEmpty ? null : Buffer.concat(chunks), { status: answer.status, headers: known });
  } finally {
    await answer.close();
  }
};

export const callbackOf = ({ publicUrl }: OidcSettings) => `${publicUrl}/v1/console/oidc/callback`;

/** @throws ProviderProblem */
export async function authorizationUrl(
  config: Config,
  settings: OidcSettings,
  { state, nonce, verifier }: Attempt,
): Promise<string> {
  const client = await load();
  const configuration = await discover(config, settings);
  const parameters = {
    redirect_uri: callbackOf(settings),
    scope: settings.scope,
    state,
    nonce,
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  };
  return client.buildAuthorizationUrl(configuration, parameters).href;
}

/** @throws ProviderProblem */
export async function exchangeCode(
  config: Config,
  settings: OidcSettings,
  attempt: Attempt,
  query: string,
): Promise<Identity> {
  const client = await load();
  const configuration = await discover(config, settings);
  return translated(async () => {
    const tokens = await client.authorizationCodeGrant(
      configuration,
      new URL(`${callbackOf(settings)}${query}`),
      { expectedState: attempt.state, expectedNonce: attempt.nonce, pkceCodeVerifier: attempt.verifier },
    );
    const idClaims = tokens.claims();
    if (idClaims === undefined || tokens.id_token === undefined)
      throw new ProviderProblem('token', new Error('the answer has no ID token'));
    const { sub, iat } = idClaims;
    // The token has just been issued, so its time shows whether the clocks agree.
    if (Math.abs(Date.now() / 1_000 - iat) > CLOCK_TOLERANCE_S) throw new ProviderProblem('clock', null);
    const liveClaims = await requestClaims(configuration, tokens.access_token, sub);
    const seconds = tokens.expiresIn();
    return {
      subject: sub,
      fixedClaims: without(personalClaims(idClaims), liveClaims),
      liveClaims,
      tokens: { accessToken: tokens.access_token, idToken: tokens.id_token },
      expiresAt: seconds === undefined ? null : new Date(Date.now() + seconds * 1_000),
    };
  });
}

export async function askAgain(
  config: Config,
  settings: OidcSettings,
  { accessToken }: Tokens,
  subject: string,
): Promise<Claims> {
  const configuration = await discover(config, settings);
  return translated(() => requestClaims(configuration, accessToken, subject));
}

async function requestClaims(
  configuration: Configuration,
  accessToken: string,
  subject: string,
): Promise<Claims> {
  if (configuration.serverMetadata().userinfo_endpoint === undefined) return {};
  const client = await load();
  return personalClaims(await client.fetchUserInfo(configuration, accessToken, subject));
}

/** Returns `null` if the provider has no address for ending a session. */
export async function endSessionUrl(
  config: Config,
  settings: OidcSettings,
  { idToken }: Tokens,
): Promise<string | null> {
  const client = await load();
  const configuration = await discover(config, settings);
  if (configuration.serverMetadata().end_session_endpoint === undefined) return null;
  return client.buildEndSessionUrl(configuration, {
    id_token_hint: idToken,
    post_logout_redirect_uri: `${settings.publicUrl}/console`,
  }).href;
}

/** Claims that do not describe the person. */
const protocolClaims: ReadonlySet<string> = new Set(
  'iss aud exp iat nbf auth_time nonce acr amr azp at_hash c_hash sid jti'.split(' '),
);

function personalClaims(claims: object): Claims {
  return Object.fromEntries(Object.entries(claims).filter(([name]) => !protocolClaims.has(name)));
}

export function without(claims: Claims, others: Claims): Claims {
  return Object.fromEntries(Object.entries(claims).filter(([name]) => !Object.hasOwn(others, name)));
}

async function translated<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof ProviderProblem ? error : new ProviderProblem(codeOf(error), error);
  }
}

const codes: Readonly<Record<string, ProblemCode>> = {
  OAUTH_JWT_TIMESTAMP_CHECK_FAILED: 'clock',
  OAUTH_AUTHORIZATION_RESPONSE_ERROR: 'denied',
  OAUTH_WWW_AUTHENTICATE_CHALLENGE: 'client',
  OAUTH_RESPONSE_BODY_ERROR: 'client',
  OAUTH_RESPONSE_IS_NOT_CONFORM: 'away',
  OAUTH_RESPONSE_IS_NOT_JSON: 'away',
  OAUTH_PARSE_ERROR: 'away',
  OAUTH_TIMEOUT: 'away',
  OAUTH_ABORT: 'away',
};

/** An error other than an OAuth error means that the provider did not answer. */
function codeOf(error: unknown): ProblemCode {
  const { code } = error as { readonly code?: unknown };
  if (typeof code === 'string' && code.startsWith('OAUTH_')) {
    if (isOfIssuer(error)) return 'issuer';
    return codes[code] ?? 'token';
  }
  return 'away';
}

function isOfIssuer(error: unknown): boolean {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const { cause } = at;
    const { claim, attribute } = (cause ?? {}) as { readonly claim?: unknown; readonly attribute?: unknown };
    if (claim === 'iss' || attribute === 'issuer') return true;
    if (/"iss" \(issuer\)/.test(at.message)) return true;
  }
  return false;
}
