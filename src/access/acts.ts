// Changes environments, keys and sessions for a person, and records each change as an act
// (`src/postgres/acts.ts`).

import { UsageError } from '../cli/errors.ts';
import type { System } from '../context.ts';
import { defaultEnvironmentName, type Environment } from '../domain/caller.ts';
import { type ActContext, act, inOneTransaction } from '../postgres/acts.ts';
import {
  changeEnvironment,
  createEnvironment,
  type EnvironmentChanges,
  findEnvironment,
  type ListedEnvironment,
  lockEnvironment,
} from './environment-store.ts';
import {
  createApiKey,
  deleteApiKey,
  endSession,
  type IssuedApiKey,
  listApiKeys,
  type NewApiKey,
  revokeApiKey,
  rotateApiKey,
} from './key-store.ts';

export function addEnvironment(context: ActContext, name: string): Promise<ListedEnvironment> {
  return act(
    context,
    (db) => createEnvironment(db, name),
    () => ({ action: 'environment.created', environmentId: null, thing: name }),
  );
}

export function setEnvironment(
  context: ActContext,
  name: string,
  changes: EnvironmentChanges,
): Promise<ListedEnvironment> {
  return act(
    context,
    (db) => changeEnvironment(db, name, changes),
    ({ environmentId, allowedOrigins, exportLayout }) => ({
      action: 'environment.changed',
      environmentId,
      thing: name,
      details: { allowed_origins: allowedOrigins.length, export_layout: exportLayout },
    }),
  );
}

export function issueKey(
  context: ActContext,
  environmentId: number,
  newKey: NewApiKey,
): Promise<IssuedApiKey> {
  return act(
    context,
    (db) => createApiKey(db, environmentId, newKey),
    ({ keyId, label, scopes, expiresAt }) => ({
      action: 'key.created',
      environmentId,
      thing: keyId,
      details: { label, scopes: scopes.join(', '), expires_at: expiresAt?.toISOString() ?? null },
    }),
  );
}

export function replaceKey(
  context: ActContext,
  environmentId: number,
  keyId: string,
  dates: { readonly oldExpiresAt: Date | null; readonly expiresAt: Date | null },
): Promise<IssuedApiKey> {
  return act(
    context,
    (db) => rotateApiKey(db, environmentId, keyId, dates),
    (issued) => ({
      action: 'key.rotated',
      environmentId,
      thing: keyId,
      details: { new_key_id: issued.keyId, old_expires_at: dates.oldExpiresAt?.toISOString() ?? null },
    }),
  );
}

/** @throws InputError `not_found` */
export async function endKey(context: ActContext, environmentId: number, keyId: string): Promise<void> {
  await act(
    context,
    (db) => revokeApiKey(db, environmentId, keyId),
    (isChanged) => (isChanged ? { action: 'key.revoked', environmentId, thing: keyId } : null),
  );
}

export function dropKey(context: ActContext, environmentId: number, keyId: string): Promise<void> {
  return act(
    context,
    (db) => deleteApiKey(db, environmentId, keyId),
    () => ({ action: 'key.deleted', environmentId, thing: keyId }),
  );
}

/** @throws InputError `not_found` */
export async function closeSession(
  context: ActContext,
  environmentId: number,
  sessionId: string,
): Promise<void> {
  await act(
    context,
    (db) => endSession(db, environmentId, sessionId),
    (isChanged) => (isChanged ? { action: 'session.ended', environmentId, thing: sessionId } : null),
  );
}

/**
 * Finds an environment. Creates the environment `default` if it is missing. @throws UsageError if
 * another environment is missing
 */
export async function requireEnvironment(
  system: Pick<System, 'db' | 'acts'>,
  name: string,
): Promise<Environment> {
  const { db } = system;
  const existing = await findEnvironment(db, name);
  if (existing !== null) return existing;
  if (name !== defaultEnvironmentName) {
    throw new UsageError(`There is no environment ${name}. Create it with \`sluice env create ${name}\`.`);
  }
  try {
    return await addEnvironment(system, name);
  } catch (error) {
    const other = await findEnvironment(db, name);
    if (other !== null) return other;
    throw error;
  }
}

/**
 * Creates a key if the environment `default` has never had one, for example after `sluice import`.
 * Returns the new key, which cannot be read again, or `null`.
 */
export function ensureFirstKey({ db, acts }: ActContext): Promise<string | null> {
  return inOneTransaction(db, async (transaction) => {
    const context = { db: transaction, acts };
    const { environmentId } = await requireEnvironment(context, defaultEnvironmentName);
    await lockEnvironment(transaction, environmentId);
    // An operator who has revoked the last key does not expect a new one.
    if ((await listApiKeys(transaction, environmentId)).length > 0) return null;
    return (await issueKey(context, environmentId, { label: 'first key' })).key;
  });
}
