/*
 * Suppression refuses all later records of deleted users until it is lifted. A deletion with
 * `suppress` stores a keyed hash of each id, so the ids cannot be listed. The text of refused
 * records is not stored. The deletion also removes records that are written while it runs.
 */

import { inputError } from '../../base/errors.ts';
import type { Capability } from '../../capability.ts';
import { inTransaction } from '../../postgres/database.ts';
import { awaitEarlierWriters, beginUse } from '../../postgres/uses.ts';
import { findSuppressed, guardUser, SUPPRESSED_CONSTRAINT, suppressIds } from './store.ts';

const name = 'suppression';

export const suppression: Capability = {
  name,
  refusals: {
    use: name,
    reason: {
      code: 'suppressed',
      message: 'The person was deleted and is kept out until the suppression is lifted',
      column: 'user_id',
      isSecret: true,
    },
    error: () =>
      inputError('suppressed', 'The person was deleted and is kept out until the suppression is lifted'),
    guard: guardUser,
    constraint: SUPPRESSED_CONSTRAINT,
    find: findSuppressed,
  },
  deletions: {
    option: {
      name: 'suppress',
      entity: 'users',
      request:
        'Also keeps the users out: their records are refused as `suppressed` until the suppression is lifted.',
      record: 'True if records of the users are refused from then on.',
      flag: 'keep them out: their records are refused from then on',
      question: 'and keep them out',
    },
    async begin({ pool, db }, claim, signal) {
      await inTransaction(pool, async (transaction) => {
        await beginUse(transaction.db, claim.environmentId, name);
        await suppressIds(transaction.db, claim);
      });
      // Waits for writers that do not know the suppression, so that the deletion removes their
      // records.
      await awaitEarlierWriters(db, signal);
    },
  },
  routes: async () => ({ deletions: (await import('./http.ts')).suppressionRoutes }),
};
