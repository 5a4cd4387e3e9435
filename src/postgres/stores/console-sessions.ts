import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import { inputError } from '../../domain/errors.ts';
import { CONSOLE_LINK_MS, CONSOLE_SESSION_MS, MAX_SESSIONS_PER_KEY } from '../../domain/limits.ts';
import type { Holder } from '../../domain/scope.ts';
import { camel, snake } from '../columns.ts';
import type { Database } from '../database.ts';
import { isLiveText } from './api-keys.ts';

/** A session of the console, without its secret. */
export interface ConsoleSession {
  readonly sessionId: string;
  readonly holder: Holder;
  /** `null` unless the holder is an API key. */
  readonly keyId: string | null;
  /** The user agent. */
  readonly client: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

export interface NewSession {
  readonly sessionId: string;
  /** The secret of the browser. */
  readonly cookie: string;
  readonly environmentId: number;
  readonly holder: Holder;
  readonly keyId: string | null;
  /** HMAC of the configured key that was used; the session ends when the key changes. */
  readonly mark: Buffer | null;
  readonly client: string;
}

/** 256 random bits need no slow digest. */
function digestOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}

const inMs = (ms: number) => sql<Date>`now() + ${ms} * interval '1 millisecond'`;

/** Adds a session, and deletes the oldest of its holder beyond MAX_SESSIONS_PER_KEY. */
export async function insertSession(
  db: Database,
  { cookie, ...session }: NewSession,
): Promise<ConsoleSession> {
  return db.transaction().execute(async (transaction) => {
    const added = await transaction
      .insertInto('console_sessions')
      .values({ ...snake(session), digest: digestOf(cookie), expires_at: inMs(CONSOLE_SESSION_MS) })
      .returning(sessionColumns)
      .executeTakeFirstOrThrow();
    await transaction
      .deleteFrom('console_sessions')
      .where('session_id', 'in', (of) =>
        of
          .selectFrom('console_sessions')
          .select('session_id')
          .where('environment_id', '=', session.environmentId)
          .where('holder', '=', session.holder)
          .where('key_id', 'is not distinct from', session.keyId)
          .orderBy('created_at', 'desc')
          .orderBy('session_id')
          .offset(MAX_SESSIONS_PER_KEY),
      )
      .execute();
    return added;
  });
}

/** Finds the session of a cookie, ended or not, with its environment and the state of its key. */
export function findSession(db: Database, cookie: string) {
  return db
    .selectFrom('console_sessions as s')
    .innerJoin('environments as e', 'e.environment_id', 's.environment_id')
    .leftJoin('api_keys as k', 'k.key_id', 's.key_id')
    .select(['s.session_id', 's.holder', 's.key_id', 's.mark', 's.expires_at', 's.ended_at'])
    .select(['e.environment_id', 'e.name', 'e.app_token', 'k.scopes', 'k.revoked_at'])
    .select([
      sql<boolean>`s.ended_at is null and s.expires_at > clock_timestamp()`.as('live'),
      sql<boolean>`k.revoked_at is null and (k.expires_at is null or k.expires_at > clock_timestamp())`.as(
        'key_live',
      ),
    ])
    .where('s.digest', '=', digestOf(cookie))
    .executeTakeFirst();
}

/** Precedes the id of a session among ids of keys. */
export const sessionPrefix = 'session:';

/** Selects, from an array of ids, those of sessions that are open and whose key is valid. */
export const openSessionsText = (ids: string): string => `
  select '${sessionPrefix}' || s.session_id as key_id
  from console_sessions s
  where '${sessionPrefix}' || s.session_id = any (${ids})
    and s.session_id = any (select substr(id, ${sessionPrefix.length + 1}) from unnest(${ids}) id)
    and s.ended_at is null
    and s.expires_at > clock_timestamp()
    and (s.key_id is null or exists (select 1 from api_keys where key_id = s.key_id and ${isLiveText}))`;

export type SessionOwner = Pick<ConsoleSession, 'holder' | 'keyId'>;

/** Lists the open sessions, newest first; only those of `owner`, if given. */
export async function listSessions(
  db: Database,
  environmentId: number,
  owner?: SessionOwner,
): Promise<ConsoleSession[]> {
  let live = db
    .selectFrom('console_sessions')
    .select(sessionColumns)
    .where('environment_id', '=', environmentId)
    .where('ended_at', 'is', null)
    .where('expires_at', '>', sql<Date>`now()`);
  if (owner !== undefined)
    live = live.where('holder', '=', owner.holder).where('key_id', 'is not distinct from', owner.keyId);
  return live.orderBy('created_at', 'desc').orderBy('session_id').execute();
}

/** Ends a session; only one of `owner`, if given. Throws `InputError` `not_found`. */
export async function endSession(
  db: Database,
  environmentId: number,
  sessionId: string,
  owner?: SessionOwner,
): Promise<void> {
  let ending = db
    .updateTable('console_sessions')
    .set({ ended_at: sql`coalesce(ended_at, now())` })
    .where('environment_id', '=', environmentId)
    .where('session_id', '=', sessionId);
  if (owner !== undefined)
    ending = ending.where('holder', '=', owner.holder).where('key_id', 'is not distinct from', owner.keyId);
  const { numUpdatedRows } = await ending.executeTakeFirstOrThrow();
  if (numUpdatedRows > 0n) return;
  throw inputError('not_found', 'there is no such session', `session_id: ${sessionId.slice(0, 100)}`);
}

/** Lets the session look at another environment. */
export async function moveSession(db: Database, sessionId: string, environmentId: number): Promise<void> {
  await db
    .updateTable('console_sessions')
    .set({ environment_id: environmentId })
    .where('session_id', '=', sessionId)
    .execute();
}

/** Adds a link that signs in once, and deletes those that have expired. */
export async function insertLink(db: Database, environmentId: number, token: string): Promise<void> {
  await db.deleteFrom('console_links').where('expires_at', '<', sql<Date>`now()`).execute();
  await db
    .insertInto('console_links')
    .values({ digest: digestOf(token), environment_id: environmentId, expires_at: inMs(CONSOLE_LINK_MS) })
    .execute();
}

/** Uses a link up and returns its environment; `null` if it is unknown, used or expired. */
export async function takeLink(db: Database, token: string): Promise<number | null> {
  const row = await db
    .deleteFrom('console_links')
    .where('digest', '=', digestOf(token))
    .returning(['environment_id', sql<boolean>`expires_at > clock_timestamp()`.as('live')])
    .executeTakeFirst();
  return row?.live === true ? row.environment_id : null;
}

const sessionColumns = camel('session_id', 'holder', 'key_id', 'client', 'created_at', 'expires_at');
