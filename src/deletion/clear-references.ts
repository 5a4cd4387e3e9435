import { setTimeout as delay } from 'node:timers/promises';
import { DELETION_BATCH_ROWS } from '../domain/limits.ts';
import { releaseEvents, releaseUsers, withoutProfile } from '../postgres/deletion/delete-companies.ts';
import { earlierWritersEnded, markNow } from '../postgres/deletion/earlier-writers.ts';
import { readIds } from '../postgres/stores/deletions.ts';
import type { Attempt } from './context.ts';

const writersTimeoutMs = 10_000;
const pollMs = 20;

/**
 * A record that was being written while its company went may name it still: it saw the company, and so did not make it.
 * Once all who wrote then have ended, whatever names a company without a profile is freed of it.
 */
export async function clearReferences({ context, deletion, step }: Attempt): Promise<void> {
  const { deletionId, environmentId } = deletion;
  const mark = await markNow(context.db);
  const deadline = performance.now() + writersTimeoutMs;
  while (!(await earlierWritersEnded(context.db, mark)) && performance.now() < deadline) await delay(pollMs);
  const ids = await withoutProfile(context.db, environmentId, await readIds(context.db, deletionId));
  if (ids.length === 0) return;
  const batch = { deletionId, environmentId, ids };
  for (let left = true; left; ) {
    const done = await step(async (db) => {
      const users = await releaseUsers(db, batch, DELETION_BATCH_ROWS);
      const events = await releaseEvents(db, batch, DELETION_BATCH_ROWS);
      return { events, left: users >= DELETION_BATCH_ROWS || events >= DELETION_BATCH_ROWS };
    });
    left = done.left;
  }
}
