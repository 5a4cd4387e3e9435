import { DELETION_BATCH_IDS, DELETION_BATCH_ROWS } from '../domain/limits.ts';
import type { DeletionBatch } from '../postgres/deletion/batch.ts';
import { releaseEvents, releaseUsers, settleCompanies } from '../postgres/deletion/delete-companies.ts';
import { deleteEvents, settleUsers } from '../postgres/deletion/delete-users.ts';
import { readOpenIds } from '../postgres/stores/deletions.ts';
import type { Attempt } from './context.ts';

/**
 * Removes the profiles and what hangs on them, a batch of ids at a time and of each some thousand rows in a transaction,
 * however many events a user has. What went is counted where it goes, so that whoever takes over goes on exactly there.
 */
export async function deleteProfiles(attempt: Attempt): Promise<void> {
  const { context, deletion } = attempt;
  const { deletionId, environmentId } = deletion;
  for (;;) {
    const ids = await readOpenIds(context.db, deletionId, DELETION_BATCH_IDS);
    if (ids.length === 0) return;
    const batch = { deletionId, environmentId, ids };
    if (deletion.entity === 'users') await deleteUsers(attempt, batch);
    else await deleteCompanies(attempt, batch);
  }
}

async function deleteUsers({ step }: Attempt, batch: DeletionBatch): Promise<void> {
  for (let left = true; left; ) {
    const done = await step(async (db) => {
      const events = await deleteEvents(db, batch, DELETION_BATCH_ROWS);
      if (events >= DELETION_BATCH_ROWS) return { events, left: true };
      return { events, left: false, ...(await settleUsers(db, batch)) };
    });
    left = done.left;
  }
}

/** Its users first: whoever names a company that is gone would bring it back. */
async function deleteCompanies({ step }: Attempt, batch: DeletionBatch): Promise<void> {
  for (let left = true; left; ) {
    const done = await step(async (db) => {
      const users = await releaseUsers(db, batch, DELETION_BATCH_ROWS);
      if (users >= DELETION_BATCH_ROWS) return { events: 0, left: true };
      const events = await releaseEvents(db, batch, DELETION_BATCH_ROWS);
      if (events >= DELETION_BATCH_ROWS) return { events, left: true };
      return { events, left: false, ...(await settleCompanies(db, batch)) };
    });
    left = done.left;
  }
}
