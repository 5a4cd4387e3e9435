import { closeSession } from '../../access/acts.ts';
import type { Admission, HeldSession, SignInContext } from '../../access/seam.ts';
import type { Database } from '../../postgres/database.ts';
import { type Claims, scopesOf } from './access.ts';
import { askAgain, ProviderProblem, without } from './provider.ts';
import { type OidcSettings, readSettings } from './settings.ts';
import {
  type EnvironmentGrant,
  findSession,
  listGrants,
  type OidcSession,
  reserveCheck,
  saveClaims,
} from './store.ts';
import { openTokens } from './tokens.ts';

const refused = (sentence: string): Admission => ({ refused: 'revoked', sentence });

const ended = 'The provider has ended your sign-in. Sign in again.';

/**
 * Decides what the session may do now. Asks the provider again if the provider's last answer is
 * old.
 */
export async function admit(context: SignInContext, session: HeldSession): Promise<Admission> {
  const { db, config } = context;
  const settings = readSettings(config);
  const stored = await findSession(db, session.sessionId);
  if (settings === null || stored === null || stored.client !== clientOf(settings))
    return refused('Sign-in by OpenID Connect was set up anew or turned off. Sign in again.');
  const current = stored.isDue ? await renew(context, settings, session, stored) : stored;
  if (current === null) return refused(ended);
  if (current.isStale)
    return refused('The provider has not confirmed your sign-in for 5 minutes. Try again when it answers.');
  const scopes = scopesOf(await listGrants(db, session.environmentId), claimsOf(current));
  if (scopes.length > 0) return { scopes, isAdmin: false };
  return refused(
    `None of your groups has access to the environment ${session.environment} any more. Sign in again.`,
  );
}

/** Returns `null` if the provider has ended the sign-in. */
async function renew(
  context: SignInContext,
  settings: OidcSettings,
  session: HeldSession,
  stored: OidcSession,
): Promise<OidcSession | null> {
  const { db, config, log } = context;
  const { sessionId, cookie, environmentId, subject } = session;
  if (!(await reserveCheck(db, sessionId))) return stored;
  try {
    const tokens = openTokens(stored.tokens, cookie);
    const liveClaims = await askAgain(config, settings, tokens, subject ?? '');
    const fixedClaims = without(stored.fixedClaims, liveClaims);
    await saveClaims(db, sessionId, { fixedClaims, liveClaims });
    return { ...stored, fixedClaims, liveClaims, isStale: false };
  } catch (error) {
    if (!(error instanceof ProviderProblem)) throw error;
    log.warn({ reason: error.reason, session: sessionId }, 'the provider did not confirm a sign-in');
    if (error.code === 'away') return stored;
    await closeSession(context, environmentId, sessionId);
    return null;
  }
}

export async function listEnvironments(db: Database, sessionId: string): Promise<string[]> {
  const stored = await findSession(db, sessionId);
  return stored === null ? [] : environmentsOf(await listGrants(db, null), claimsOf(stored));
}

export function environmentsOf(grants: readonly EnvironmentGrant[], claims: Claims): string[] {
  const names = new Set(grants.map(({ environment }) => environment));
  return [...names].filter(
    (name) =>
      scopesOf(
        grants.filter(({ environment }) => environment === name),
        claims,
      ).length > 0,
  );
}

export function claimsOf({
  fixedClaims,
  liveClaims,
}: Pick<OidcSession, 'fixedClaims' | 'liveClaims'>): Claims {
  return { ...fixedClaims, ...liveClaims };
}

export function clientOf({ issuer, clientId }: Pick<OidcSettings, 'issuer' | 'clientId'>): string {
  return `${issuer} ${clientId}`;
}
