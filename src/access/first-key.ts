import { defaultEnvironmentName } from '../domain/caller.ts';
import { type ActContext, inOneTransaction } from '../postgres/acts.ts';
import { issueKey } from './acts.ts';
import { lockEnvironment } from './environment-store.ts';
import { listApiKeys } from './key-store.ts';
import { requireEnvironment } from './require-environment.ts';

/**
 * Creates a key if `default` has never had one, for example after `sluice import`. Returns the new
 * key, which cannot be read again, or `null`.
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
