import type { Deletion, DeletionOutcome, DeletionStatus, IdOutcome } from '../../domain/deletion.ts';
import type { Entity } from '../../domain/entity.ts';
import type { Database } from '../database.ts';
import { aheadInLane } from './lanes.ts';

/** The environment's deletions of these ids, in no order. Only of one alone is it looked at how many are before it. */
export async function readDeletions(
  db: Database,
  environmentId: number,
  jobIds: readonly string[],
): Promise<Deletion[]> {
  if (jobIds.length === 0) return [];
  const rows = await db
    .selectFrom('deletions')
    .selectAll()
    .$if(jobIds.length === 1, (query) => query.select(aheadInLane('deletions').as('ahead')))
    .where('environment_id', '=', environmentId)
    .where('job_id', 'in', jobIds)
    .execute();
  return rows.map((row) => {
    const status = row.status as DeletionStatus;
    return {
      deletionId: row.deletion_id,
      jobId: row.job_id,
      environmentId: row.environment_id,
      entity: row.entity as Entity,
      status,
      purgeExports: row.purge_exports,
      acceptedAt: row.accepted_at,
      startedAt: row.started_at,
      endedAt: row.ended_at,
      attempts: row.attempt,
      counts: { requested: row.ids_requested, deleted: row.ids_deleted, not_found: row.ids_not_found },
      removed: {
        events: row.events_removed,
        rejects: row.rejects_removed,
        files: row.files_removed,
        exports: row.exports_removed,
      },
      failure:
        row.failure_code === null
          ? null
          : { code: row.failure_code, message: row.failure_message ?? row.failure_code },
      lastError: row.ended_at === null ? row.last_error : null,
      queuePosition: status === 'queued' ? (row.ahead ?? null) : status === 'processing' ? 0 : null,
    };
  });
}

/** At most `limit` ids after the position `after`, in the order of the request. */
export async function readOutcomes(
  db: Database,
  deletionId: number,
  after: number,
  limit: number,
): Promise<IdOutcome[]> {
  const rows = await db
    .selectFrom('deletion_ids')
    .select(['position', 'id', 'outcome', 'events', 'users'])
    .where('deletion_id', '=', deletionId)
    .where('position', '>', after)
    .orderBy('position')
    .limit(limit)
    .execute();
  return rows.map((row) => ({ ...row, outcome: (row.outcome ?? 'pending') as DeletionOutcome }));
}
