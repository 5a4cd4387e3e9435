import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { inputError } from '../base/errors.ts';
import { type Caller, defaultEnvironmentName, isRefusal, type KeyRefusal } from '../domain/caller.ts';
import { type Holder, keyScopes, scopes } from '../domain/scope.ts';
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

/* The console's way in. A key, or a one-time link of the command line, is changed for a secret that the browser keeps. */

interface ConfiguredKeys {
  readonly apiKey: string | null;
  readonly adminKey: string | null;
}

export interface SignIn {
  readonly key: string;
  /** For ADMIN_KEY: the environment to look at; by default the first one. */
  readonly environment?: string | undefined;
  readonly client: string;
}

interface SignedIn {
  readonly session: ConsoleSession;
  readonly cookie: string;
}

/** Stands for ADMIN_KEY, and for a link of the command line, where others have the id of their key. */
const adminKeyId = 'ADMIN_KEY';

/** Returns null if the key is not valid. Throws `InputError` `not_found` for ADMIN_KEY with a missing environment. */
export async function signIn(db: Database, config: ConfiguredKeys, wish: SignIn): Promise<SignedIn | null> {
  const { key, environment = defaultEnvironmentName } = wish;
  if (config.adminKey !== null && matchesDigest(key, digestKey(config.adminKey))) {
    const found = await findEnvironment(db, environment);
    if (found === null) throw inputError('not_found', 'there is no such environment', 'environment');
    return open(db, { environmentId: found.environmentId, holder: 'admin', secret: key }, wish.client);
  }
  const caller = await verifyKey(db, config.apiKey, `Token ${key}`);
  if (isRefusal(caller)) return null;
  const { keyId } = caller;
  const { environmentId } = caller.environment;
  return keyId === staticKeyId
    ? open(db, { environmentId, holder: 'static_key', secret: key }, wish.client)
    : open(db, { environmentId, holder: 'key', keyId }, wish.client);
}

/** Returns null if the link was used or has expired. */
export async function signInByLink(db: Database, token: string, client: string): Promise<SignedIn | null> {
  const environmentId = await takeLink(db, token);
  return environmentId === null ? null : open(db, { environmentId, holder: 'link' }, client);
}

/** The token of a link that signs in once: whoever may start the service may see everything. */
export async function createSignInLink(db: Database, environmentId: number): Promise<string> {
  const token = makeSecret();
  await insertLink(db, environmentId, token);
  return token;
}

interface Opening {
  readonly environmentId: number;
  readonly holder: Holder;
  readonly keyId?: string;
  readonly secret?: string;
}

async function open(db: Database, opening: Opening, client: string): Promise<SignedIn> {
  const { environmentId, holder, keyId = null, secret } = opening;
  const cookie = makeSecret();
  const session = await insertSession(db, {
    sessionId: randomBytes(9).toString('base64url'),
    cookie,
    environmentId,
    holder,
    keyId,
    mark: secret === undefined ? null : markOf(cookie, secret),
    client: client.replace(/[^\x20-\x7e]/g, '?').slice(0, maxClientName),
  });
  return { session, cookie };
}

/** The caller that a cookie stands for, with the scopes that its key has now, or why it stands for none. */
export async function verifySession(
  db: Database,
  config: ConfiguredKeys,
  cookie: string,
): Promise<Caller | KeyRefusal> {
  const row = await findSession(db, cookie);
  if (row === undefined) return { refused: 'unknown', keyId: null };
  const holder = row.holder as Holder;
  const keyId = row.key_id ?? (holder === 'static_key' ? staticKeyId : adminKeyId);
  if (!row.live) return { refused: row.ended_at === null ? 'expired' : 'revoked', keyId };
  if (!row.key_live) return { refused: row.revoked_at === null ? 'expired' : 'revoked', keyId };
  const configured = holder === 'static_key' ? config.apiKey : config.adminKey;
  if (row.mark !== null && (configured === null || !timingSafeEqual(markOf(cookie, configured), row.mark))) {
    return { refused: 'revoked', keyId };
  }
  const allowed = row.scopes;
  return {
    environment: { environmentId: row.environment_id, name: row.name, appToken: row.app_token },
    scopes: keyScopes.filter(
      (scope) => scope !== 'browser' && (allowed ?? (scopes as readonly string[])).includes(scope),
    ),
    keyId,
    session: {
      sessionId: row.session_id,
      expiresAt: row.expires_at,
      isAdmin: holder === 'admin' || holder === 'link',
    },
  };
}

function makeSecret(): string {
  return randomBytes(32).toString('base64url');
}

function markOf(cookie: string, key: string): Buffer {
  return createHmac('sha256', cookie).update(key).digest();
}
