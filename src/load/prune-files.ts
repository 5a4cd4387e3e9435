import { sql } from 'kysely';
import pLimit from 'p-limit';
import type { FileRef } from '../files/file-store.ts';
import type { LoadContext } from './context.ts';

export interface Retention {
  /** Days that received files are kept after their load ended. */
  readonly fileDays: number;
  /** Days that job records and rejects are kept after the load ended. */
  readonly jobDays: number;
}

const filesPerRound = 500;
const removalsAtATime = 4;
const workerForgottenHours = 1;

/** Removes what has outlived its retention: received files, job records with their rejects, old keys. */
export async function pruneFiles(
  context: Pick<LoadContext, 'db' | 'files'>,
  retention: Retention,
): Promise<{ files: number; jobs: number }> {
  const { db } = context;
  let files = 0;
  // Round after round: more may come to their end in a day than one round takes.
  for (let removed = filesPerRound; removed === filesPerRound; files += removed) {
    removed = await pruneRound(context, retention.fileDays);
  }
  const jobs = await db
    .deleteFrom('loads')
    .where('file_ref', 'is', null)
    .where('ended_at', '<', sql<Date>`now() - ${retention.jobDays} * interval '1 day'`)
    .executeTakeFirst();
  await db
    .deleteFrom('idempotency_keys')
    .where('created_at', '<', sql<Date>`now() - interval '24 hours'`)
    .execute();
  await db
    .deleteFrom('workers')
    .where('seen_at', '<', sql<Date>`now() - ${workerForgottenHours} * interval '1 hour'`)
    .execute();
  return { files, jobs: Number(jobs.numDeletedRows) };
}

/** How many were removed, at most `filesPerRound`. */
async function pruneRound(
  { db, files }: Pick<LoadContext, 'db' | 'files'>,
  fileDays: number,
): Promise<number> {
  const expired = await db
    .selectFrom('loads')
    .select(['load_id', 'file_ref'])
    .where('file_ref', 'is not', null)
    .where('ended_at', '<', sql<Date>`now() - ${fileDays} * interval '1 day'`)
    .limit(filesPerRound)
    .execute();
  const atATime = pLimit(removalsAtATime);
  await Promise.all(
    expired.map(({ load_id, file_ref }) =>
      atATime(async () => {
        await files.remove(file_ref as FileRef);
        await db.updateTable('loads').set({ file_ref: null }).where('load_id', '=', load_id).execute();
        // Kept for a retry, which without the file there cannot be.
        await db.deleteFrom('load_chunk_keys').where('load_id', '=', load_id).execute();
        await db.deleteFrom('load_replays').where('load_id', '=', load_id).execute();
      }),
    ),
  );
  return expired.length;
}
