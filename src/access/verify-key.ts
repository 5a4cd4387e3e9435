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

/** Stands for the key of the configuration where others have their id. */
export const staticKeyId = 'API_KEY';

/** Compared with where there is no such key, so that an unknown id costs what a wrong secret does. */
const nobody = digestKey('');

/**
 * The caller that an Authorization header (`Token <key>`) stands for, or null: none, another scheme, unknown, wrong,
 * revoked or expired. `staticKey` (API_KEY) opens the environment `default` with every scope.
 */
export async function verifyKey(
  db: Database,
  staticKey: string | null,
  header: string | undefined,
): Promise<Caller | null> {
  const text = /^token +(\S+)$/i.exec(header?.trim() ?? '')?.[1];
  if (text === undefined) return null;
  if (staticKey !== null && matchesDigest(text, digestKey(staticKey))) return defaultCaller(db);
  const keyId = keyIdOf(text);
  return keyId === null ? null : findCaller(db, keyId, text);
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

async function findCaller(db: Database, keyId: string, text: string): Promise<Caller | null> {
  const row = await db
    .selectFrom('api_keys as k')
    .innerJoin('environments as e', 'e.environment_id', 'k.environment_id')
    .select(['k.digest', 'k.scopes', 'e.environment_id', 'e.name', 'e.app_token'])
    .select(isLive.as('live'))
    .where('k.key_id', '=', keyId)
    .executeTakeFirst();
  const matches = matchesDigest(text, row?.digest ?? nobody);
  if (row === undefined || !matches || !row.live) return null;
  return {
    environment: { environmentId: row.environment_id, name: row.name, appToken: row.app_token },
    scopes: scopes.filter((scope) => row.scopes.includes(scope)),
    keyId,
  };
}

async function defaultCaller(db: Database): Promise<Caller | null> {
  const environment = await findEnvironment(db, defaultEnvironmentName);
  return environment && { environment, scopes, keyId: staticKeyId };
}
