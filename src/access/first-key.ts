import { defaultEnvironmentName } from '../domain/caller.ts';
import { type ActContext, inOneTransaction } from '../postgres/acts.ts';
import { issueKey } from './acts.ts';
import { lockEnvironment } from './environment-store.ts';
import { listApiKeys } from './key-store.ts';
import { requireEnvironment } from './require-environment.ts';

/**
 * Creates the environment `default` if it is missing, and a key if the environment has never had
 * one, for example after `sluice import`. Returns the new key, which only the caller ever sees, or
 * `null`.
 */
export function ensureFirstKey({ db, acts }: ActContext): Promise<string | null> {
  return inOneTransaction(db, async (transaction) => {
    const context = { db: transaction, acts };
    const { environmentId } = await requireEnvironment(context, defaultEnvironmentName);
    await lockEnvironment(transaction, environmentId);
    // Revoked keys also count, because an operator who has revoked the last key does not expect a
    // new one.
    if ((await listApiKeys(transaction, environmentId)).length > 0) return null;
    return (await issueKey(context, environmentId, { label: 'first key' })).key;
  });
}
