import { sql } from 'kysely';
import type { Database } from '../database.ts';
import { restartTasks } from '../stores/tasks.ts';

/**
 * Exports of the environment that are under way begin anew: what they have written is of a moment before. Their workers
 * find out when they renew the lease, and cannot complete any more. Returns the moment: no export that is under way
 * then, or begins later, shows what was before it.
 */
export async function restartExports(db: Database, environmentId: number): Promise<Date> {
  const { rows } = await sql<{ moment: Date }>`select clock_timestamp() as moment`.execute(db);
  await restartTasks(db, 'export', environmentId);
  return rows[0]?.moment ?? new Date();
}

/** Up to `limit` completed exports of the environment whose files show what was at `moment` or before. */
export async function findKeptExports(
  db: Database,
  environmentId: number,
  moment: Date,
  limit: number,
): Promise<{ exportId: number; jobId: string }[]> {
  return db
    .selectFrom('exports')
    .select(['export_id as exportId', 'job_id as jobId'])
    .where('environment_id', '=', environmentId)
    .where('status', '=', 'completed')
    .where('files_expired_at', 'is', null)
    .where('snapshot_at', '<=', moment)
    .orderBy('export_id')
    .limit(limit)
    .execute();
}
