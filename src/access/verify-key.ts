import { sql } from 'kysely';
import type { Database } from '../postgres/database.ts';
import { defaultEnvironmentName, type Environment, findEnvironment } from './environments.ts';
import { digestKey, keyIdOf, matchesDigest } from './key-text.ts';
import { type Scope, scopes } from './scopes.ts';

/** Who calls, and what they may do. */
export interface Caller {
  readonly environment: Environment;
  readonly scopes: readonly Scope[];
  /** `staticKeyId` for the key of the configuration. */
  readonly keyId: string;
}

/** Why nobody is let in. A caller is not told which of the last three it is: who guesses would learn which ids there are. */
export interface KeyRefusal {
  readonly refused: 'missing' | 'malformed' | 'unknown' | 'revoked' | 'expired';
  /** Public id of the key, where the header has one. */
  readonly keyId: string | null;
}

export function isRefusal(found: Caller | KeyRefusal): found is KeyRefusal {
  return 'refused' in found;
}

/** Stands for the key of the configuration where others have their id. */
export const staticKeyId = 'API_KEY';

/** Compared with where there is no such key, so that an unknown id costs what a wrong secret does. */
const nobody = digestKey('');

/**
 * The caller that an Authorization header (`Token <key>`) stands for, or why it stands for none. `staticKey` (API_KEY) opens
 * the environment `default` with every scope.
 */
export async function verifyKey(
  db: Database,
  staticKey: string | null,
  header: string | undefined,
): Promise<Caller | KeyRefusal> {
  const given = header?.trim() ?? '';
  if (given === '') return { refused: 'missing', keyId: null };
  const text = /^token +(\S+)$/i.exec(given)?.[1];
  if (text === undefined) return { refused: 'malformed', keyId: null };
  if (staticKey !== null && matchesDigest(text, digestKey(staticKey))) return defaultCaller(db);
  const keyId = keyIdOf(text);
  return keyId === null ? { refused: 'malformed', keyId } : findCaller(db, keyId, text);
}

const isLive = sql<boolean>`revoked_at is null and (expires_at is null or expires_at > clock_timestamp())`;

/** Whether a key is neither revoked nor expired. */
export async function isLiveKey(db: Database, keyId: string): Promise<boolean> {
  const row = await db
    .selectFrom('api_keys')
    .select(isLive.as('live'))
    .where('key_id', '=', keyId)
    .executeTakeFirst();
  return row?.live === true;
}

async function findCaller(db: Database, keyId: string, text: string): Promise<Caller | KeyRefusal> {
  const row = await db
    .selectFrom('api_keys as k')
    .innerJoin('environments as e', 'e.environment_id', 'k.environment_id')
    .select(['k.digest', 'k.scopes', 'e.environment_id', 'e.name', 'e.app_token'])
    .select([isLive.as('live'), 'k.revoked_at'])
    .where('k.key_id', '=', keyId)
    .executeTakeFirst();
  const matches = matchesDigest(text, row?.digest ?? nobody);
  if (row === undefined || !matches) return { refused: 'unknown', keyId };
  if (!row.live) return { refused: row.revoked_at === null ? 'expired' : 'revoked', keyId };
  return {
    environment: { environmentId: row.environment_id, name: row.name, appToken: row.app_token },
    scopes: scopes.filter((scope) => row.scopes.includes(scope)),
    keyId,
  };
}

async function defaultCaller(db: Database): Promise<Caller | KeyRefusal> {
  const environment = await findEnvironment(db, defaultEnvironmentName);
  if (environment === null) return { refused: 'unknown', keyId: staticKeyId };
  return { environment, scopes, keyId: staticKeyId };
}
