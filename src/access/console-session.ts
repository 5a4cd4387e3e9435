import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { inputError } from '../base/errors.ts';
import type { System } from '../context.ts';
import type { Actor } from '../domain/act.ts';
import {
  type Caller,
  defaultEnvironmentName,
  type Holder,
  isRefusal,
  type KeyRefusal,
  keyScopes,
  scopes,
} from '../domain/caller.ts';
import { type ActContext, act, actingAs } from '../postgres/acts.ts';
import type { Database } from '../postgres/database.ts';
import { findEnvironment, listEnvironments } from './environment-store.ts';
import {
  type ConsoleSession,
  digestKey,
  findLiveSession,
  findSession,
  insertLink,
  insertSession,
  matchesDigest,
  type NewSession as NewSessionRow,
  takeLink,
} from './key-store.ts';
import type { Admission, HeldSession, SignInWay } from './seam.ts';
import { noTurns, staticKeyId, verifyKey } from './verify-key.ts';

const maxClientName = 200;

/* Signs in to the console: exchanges a key or a one-time link for a session cookie. */

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

/** The key id of sessions that were opened with ADMIN_KEY or a link. */
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
    return openSession(
      context,
      { environmentId: row.environmentId, holder: 'admin', secret: key },
      wish.client,
    );
  }
  const caller = await verifyKey(db, config.apiKey, `Token ${key}`);
  if (isRefusal(caller)) return null;
  const { keyId } = caller;
  const { environmentId } = caller.environment;
  return keyId === staticKeyId
    ? openSession(context, { environmentId, holder: 'static_key', secret: key }, wish.client)
    : openSession(context, { environmentId, holder: 'key', keyId }, wish.client);
}

/** Returns `null` if the link has been used or has expired. */
export async function signInByLink(
  context: ActContext,
  token: string,
  client: string,
): Promise<NewSession | null> {
  const environmentId = await takeLink(context.db, token);
  return environmentId === null ? null : openSession(context, { environmentId, holder: 'link' }, client);
}

/** Returns a token whose link signs in once, as an administrator. */
export async function createSignInLink(context: ActContext, environmentId: number): Promise<string> {
  const token = makeSecret();
  await act(
    context,
    (db) => insertLink(db, environmentId, token),
    () => ({ action: 'link.created', environmentId, thing: null }),
  );
  return token;
}

export interface Opening {
  readonly environmentId: number;
  readonly holder: string;
  readonly keyId?: string;
  readonly secret?: string;
  readonly subject?: string;
  readonly expiresAt?: Date | null;
}

/**
 * Always creates a cookie, so that an attacker cannot make a browser use a cookie that the attacker
 * knows.
 */
export async function openSession(
  context: ActContext,
  opening: Opening,
  client: string,
): Promise<NewSession> {
  const { environmentId, holder, keyId = null, secret, subject = null, expiresAt = null } = opening;
  const cookie = makeSecret();
  const sessionId = randomBytes(9).toString('base64url');
  const added = {
    sessionId,
    cookie,
    environmentId,
    holder,
    keyId,
    subject,
    mark: secret === undefined ? null : markOf(cookie, secret),
    client: client.replace(/[^\x20-\x7e]/g, '?').slice(0, maxClientName),
    expiresAt,
  };
  const session = await act(
    actingAs(context, sessionActor(added)),
    (db) => insertSession(db, added),
    () => ({ action: 'session.started', environmentId, thing: sessionId, details: { by: holder } }),
  );
  return { session, cookie };
}

type ActingSession = Pick<NewSessionRow, 'sessionId' | 'holder' | 'keyId' | 'subject'>;

function sessionActor(session: ActingSession): Actor {
  const kind = session.subject === null ? 'api_key' : 'person';
  return { kind, name: shownKeyId(session), sessionId: session.sessionId };
}

/** Returns `null` if the session has ended. */
export async function findSessionActor(db: Database, sessionId: string): Promise<Actor | null> {
  const session = await findLiveSession(db, sessionId);
  return session === undefined ? null : sessionActor(session);
}

function shownKeyId(of: Pick<NewSessionRow, 'holder' | 'keyId' | 'subject'>): string {
  return of.keyId ?? of.subject ?? (of.holder === 'static_key' ? staticKeyId : adminKeyId);
}

type SessionRow = NonNullable<Awaited<ReturnType<typeof findSession>>>;

interface CoreSession extends HeldSession {
  readonly row: SessionRow;
}

const everything: Admission = { scopes, isAdmin: true };

const ways: Readonly<Record<Holder, SignInWay<CoreSession>>> = {
  key: {
    holder: 'key',
    async admit(_, { row }) {
      if (!row.key_live) return { refused: row.revoked_at === null ? 'expired' : 'revoked' };
      const allowed = row.scopes ?? [];
      return { scopes: keyScopes.filter((scope) => allowed.includes(scope)), isAdmin: false };
    },
  },
  static_key: {
    holder: 'static_key',
    admit: async ({ config }, session) =>
      isMarked(session, config.apiKey) ? { scopes, isAdmin: false } : { refused: 'revoked' },
  },
  admin: {
    holder: 'admin',
    admit: async ({ config }, session) =>
      isMarked(session, config.adminKey) ? everything : { refused: 'revoked' },
  },
  link: { holder: 'link', admit: async () => everything },
};

/** True if `key` (API_KEY or ADMIN_KEY) has not changed since the sign-in. */
function isMarked({ cookie, row: { mark } }: CoreSession, key: string | null): boolean {
  return key !== null && mark !== null && timingSafeEqual(markOf(cookie, key), mark);
}

function wayOf({ signInWays }: SessionContext, holder: string): SignInWay<CoreSession> | undefined {
  return Object.hasOwn(ways, holder)
    ? ways[holder as Holder]
    : signInWays.find((each) => each.holder === holder);
}

export type SessionContext = Pick<System, 'db' | 'acts' | 'config' | 'log' | 'signInWays'>;

/**
 * Finds the caller who has the cookie of a session. `turns` limits only the look-up of the cookie.
 * It does not limit `admit`, which may wait for another service.
 */
export async function verifySession(
  context: SessionContext,
  cookie: string,
  turns = noTurns,
): Promise<Caller | KeyRefusal> {
  const row = await turns.run(cookie, () => findOpenSession(context.db, cookie));
  if (isRefusal(row)) return row;
  const { holder, subject, environment_id: environmentId, session_id: sessionId } = row;
  const keyId = shownKeyId({ holder, keyId: row.key_id, subject });
  const session = { sessionId, cookie, environmentId, environment: row.name, subject, row };
  const admission = await wayOf(context, holder)?.admit(context, session);
  if (admission === undefined || 'refused' in admission) return { refused: 'revoked', keyId, ...admission };
  return {
    environment: { environmentId, name: row.name, appToken: row.app_token },
    scopes: keyScopes.filter((scope) => scope !== 'browser' && admission.scopes.includes(scope)),
    keyId,
    session: { sessionId, holder, subject, expiresAt: row.expires_at, isAdmin: admission.isAdmin },
  };
}

async function findOpenSession(db: Database, cookie: string): Promise<SessionRow | KeyRefusal> {
  const row = await findSession(db, cookie);
  if (row === undefined) return { refused: 'unknown', keyId: null };
  if (row.live) return row;
  const keyId = shownKeyId({ holder: row.holder, keyId: row.key_id, subject: row.subject });
  return { refused: row.ended_at === null ? 'expired' : 'revoked', keyId };
}

export async function listReachable(context: SessionContext, caller: Caller): Promise<readonly string[]> {
  const { session, environment } = caller;
  if (session === undefined) return [environment.name];
  if (session.isAdmin) return (await listEnvironments(context.db)).map(({ name }) => name);
  const names = await wayOf(context, session.holder)?.environments?.(context, session.sessionId);
  return names ?? [environment.name];
}

function makeSecret(): string {
  return randomBytes(32).toString('base64url');
}

function markOf(cookie: string, key: string): Buffer {
  return createHmac('sha256', cookie).update(key).digest();
}
