import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { inputError } from '../base/errors.ts';
import { type Caller, defaultEnvironmentName, isRefusal, type KeyRefusal } from '../domain/caller.ts';
import { type Holder, keyScopes, scopes } from '../domain/scope.ts';
import { type ActContext, act, actingAs } from '../postgres/acts.ts';
import type { Database } from '../postgres/database.ts';
import { findEnvironment } from './environment-store.ts';
import {
  type ConsoleSession,
  digestKey,
  findSession,
  insertLink,
  insertSession,
  matchesDigest,
  takeLink,
} from './key-store.ts';
import { staticKeyId, verifyKey } from './verify-key.ts';

const maxClientName = 200;

/* Sign-in to the console: exchanges a key or a one-time link for a secret in a cookie. */

interface ConfiguredKeys {
  readonly apiKey: string | null;
  readonly adminKey: string | null;
}

export interface SignIn {
  readonly key: string;
  /** Environment of a session opened with ADMIN_KEY. Default: `default`. */
  readonly environment?: string | undefined;
  readonly client: string;
}

interface NewSession {
  readonly session: ConsoleSession;
  readonly cookie: string;
}

/** Key id of sessions opened with ADMIN_KEY or a link. */
const adminKeyId = 'ADMIN_KEY';

/** Returns `null` for an invalid key. @throws InputError `not_found` for an unknown environment */
export async function signIn(
  context: ActContext,
  config: ConfiguredKeys,
  wish: SignIn,
): Promise<NewSession | null> {
  const { db } = context;
  const { key, environment = defaultEnvironmentName } = wish;
  if (config.adminKey !== null && matchesDigest(key, digestKey(config.adminKey))) {
    const row = await findEnvironment(db, environment);
    if (row === null) throw inputError('not_found', 'There is no such environment', 'environment');
    return open(context, { environmentId: row.environmentId, holder: 'admin', secret: key }, wish.client);
  }
  const caller = await verifyKey(db, config.apiKey, `Token ${key}`);
  if (isRefusal(caller)) return null;
  const { keyId } = caller;
  const { environmentId } = caller.environment;
  return keyId === staticKeyId
    ? open(context, { environmentId, holder: 'static_key', secret: key }, wish.client)
    : open(context, { environmentId, holder: 'key', keyId }, wish.client);
}

/** Returns `null` if the link has been used or has expired. */
export async function signInByLink(
  context: ActContext,
  token: string,
  client: string,
): Promise<NewSession | null> {
  const environmentId = await takeLink(context.db, token);
  return environmentId === null ? null : open(context, { environmentId, holder: 'link' }, client);
}

/** Returns the token of a one-time link, which signs in its user as an administrator. */
export async function createSignInLink(context: ActContext, environmentId: number): Promise<string> {
  const token = makeSecret();
  await act(
    context,
    (db) => insertLink(db, environmentId, token),
    () => ({ action: 'link.created', environmentId, thing: null }),
  );
  return token;
}

interface Opening {
  readonly environmentId: number;
  readonly holder: Holder;
  readonly keyId?: string;
  readonly secret?: string;
}

async function open(context: ActContext, opening: Opening, client: string): Promise<NewSession> {
  const { environmentId, holder, keyId = null, secret } = opening;
  const cookie = makeSecret();
  const sessionId = randomBytes(9).toString('base64url');
  const added = {
    sessionId,
    cookie,
    environmentId,
    holder,
    keyId,
    mark: secret === undefined ? null : markOf(cookie, secret),
    client: client.replace(/[^\x20-\x7e]/g, '?').slice(0, maxClientName),
  };
  const actor = { kind: 'api_key', name: shownKeyId(holder, keyId), sessionId } as const;
  const session = await act(
    actingAs(context, actor),
    (db) => insertSession(db, added),
    () => ({ action: 'session.started', environmentId, thing: sessionId, details: { by: holder } }),
  );
  return { session, cookie };
}

/**
 * Returns the caller to whom a session cookie belongs, or a refusal. The caller's scopes are the
 * current scopes of the session's key.
 */
export async function verifySession(
  db: Database,
  config: ConfiguredKeys,
  cookie: string,
): Promise<Caller | KeyRefusal> {
  const row = await findSession(db, cookie);
  if (row === undefined) return { refused: 'unknown', keyId: null };
  const holder = row.holder as Holder;
  const keyId = shownKeyId(holder, row.key_id);
  if (!row.live) return { refused: row.ended_at === null ? 'expired' : 'revoked', keyId };
  if (!row.key_live) return { refused: row.revoked_at === null ? 'expired' : 'revoked', keyId };
  const configured = holder === 'static_key' ? config.apiKey : config.adminKey;
  if (row.mark !== null && (configured === null || !timingSafeEqual(markOf(cookie, configured), row.mark))) {
    return { refused: 'revoked', keyId };
  }
  const allowed = row.scopes ?? (scopes as readonly string[]);
  return {
    environment: { environmentId: row.environment_id, name: row.name, appToken: row.app_token },
    scopes: keyScopes.filter((scope) => scope !== 'browser' && allowed.includes(scope)),
    keyId,
    session: {
      sessionId: row.session_id,
      expiresAt: row.expires_at,
      isAdmin: holder === 'admin' || holder === 'link',
    },
  };
}

function shownKeyId(holder: Holder, keyId: string | null): string {
  return keyId ?? (holder === 'static_key' ? staticKeyId : adminKeyId);
}

function makeSecret(): string {
  return randomBytes(32).toString('base64url');
}

function markOf(cookie: string, key: string): Buffer {
  return createHmac('sha256', cookie).update(key).digest();
}
