import { sql } from 'kysely';
import type { Entity } from '../../domain/entity.ts';
import type { JobIdentity } from '../../domain/job-fields.ts';
import { MAX_DELETION_LOSSES } from '../../domain/limits.ts';
import type { Database } from '../database.ts';
import { afterPause, isDue, isLapsed, isToldLongAgo, leaseFor } from './lease.ts';

/** One attempt at one deletion. The attempt number fences every write it makes. */
export interface DeletionClaim extends JobIdentity {
  readonly deletionId: number;
  readonly environmentId: number;
  readonly entity: Entity;
  readonly purgeExports: boolean;
  readonly attempt: number;
}

export interface NewDeletion extends JobIdentity {
  readonly environmentId: number;
  readonly entity: Entity;
  readonly ids: readonly string[];
  readonly purgeExports: boolean;
}

/** Puts a deletion into its lane, behind all that is accepted; call it in the transaction that holds the lane's lock. */
export async function insertDeletion(db: Database, asked: NewDeletion): Promise<void> {
  const { deletion_id } = await db
    .insertInto('deletions')
    .values({
      job_id: asked.jobId,
      request_id: asked.requestId,
      environment_id: asked.environmentId,
      entity: asked.entity,
      purge_exports: asked.purgeExports,
      ids_requested: asked.ids.length,
    })
    .returning('deletion_id')
    .executeTakeFirstOrThrow();
  await sql`
    insert into deletion_ids (deletion_id, position, id)
    select ${deletion_id}, ordinality, id
    from unnest(${[...asked.ids]}::text[]) with ordinality as given (id, ordinality)`.execute(db);
}

/**
 * Takes a deletion whose turn it is for this worker; null if it has ended or another has it. One whose worker vanished counts
 * as lost by that; the loss that is one too many is left to `rescueDeletions`.
 */
export async function claimDeletion(db: Database, deletionId: number): Promise<DeletionClaim | null> {
  const row = await db
    .updateTable('deletions')
    .set((eb) => ({
      attempt: eb('attempt', '+', 1),
      lease_until: leaseFor(),
      losses: sql<number>`losses + (lease_until is not null)::int`,
    }))
    .where('deletion_id', '=', deletionId)
    .where('status', '=', 'processing')
    .where((eb) =>
      eb.or([
        eb('lease_until', 'is', null),
        eb.and([isLapsed('lease_until'), eb('losses', '<', MAX_DELETION_LOSSES - 1)]),
      ]),
    )
    .returning(['job_id', 'request_id', 'environment_id', 'entity', 'purge_exports', 'attempt'])
    .executeTakeFirst();
  if (row === undefined) return null;
  return {
    deletionId,
    jobId: row.job_id,
    requestId: row.request_id,
    environmentId: row.environment_id,
    entity: row.entity as Entity,
    purgeExports: row.purge_exports,
    attempt: row.attempt,
  };
}

/** What one transaction of a deletion did. */
export interface DeletionStep {
  readonly deleted?: number;
  readonly notFound?: number;
  readonly events?: number;
  readonly rejects?: number;
  readonly files?: number;
  readonly exports?: number;
}

/**
 * Prolongs the lease and adds up what was done; errors and losses are counted anew then, since those in a row count. The
 * fence, the last statement of each transaction of a deletion: false when it is no longer ours, and the caller must roll back.
 */
export async function noteStep(
  db: Database,
  claim: DeletionClaim,
  step: DeletionStep = {},
): Promise<boolean> {
  const moves = Object.values(step).some((count) => count > 0);
  const rows = await own(db, claim)
    .set((eb) => ({
      lease_until: leaseFor(),
      ...(moves && { failures: 0, losses: 0, last_error: null }),
      ids_deleted: eb('ids_deleted', '+', step.deleted ?? 0),
      ids_not_found: eb('ids_not_found', '+', step.notFound ?? 0),
      events_removed: eb('events_removed', '+', step.events ?? 0),
      rejects_removed: eb('rejects_removed', '+', step.rejects ?? 0),
      files_removed: eb('files_removed', '+', step.files ?? 0),
      exports_removed: eb('exports_removed', '+', step.exports ?? 0),
    }))
    .returning('deletion_id')
    .execute();
  return rows.length > 0;
}

/** Up to `limit` ids that are not settled, in the order of the request. */
export async function readOpenIds(db: Database, deletionId: number, limit: number): Promise<string[]> {
  const rows = await db
    .selectFrom('deletion_ids')
    .select('id')
    .where('deletion_id', '=', deletionId)
    .where('outcome', 'is', null)
    .orderBy('position')
    .limit(limit)
    .execute();
  return rows.map(({ id }) => id);
}

/** All ids of a deletion, settled or not. */
export async function readIds(db: Database, deletionId: number): Promise<string[]> {
  const rows = await db
    .selectFrom('deletion_ids')
    .select('id')
    .where('deletion_id', '=', deletionId)
    .orderBy('position')
    .execute();
  return rows.map(({ id }) => id);
}

/** False when it is no longer ours. */
export async function completeDeletion(db: Database, claim: DeletionClaim): Promise<boolean> {
  const rows = await own(db, claim)
    .set({ status: 'completed', ended_at: sql`now()`, lease_until: null })
    .returning('deletion_id')
    .execute();
  return rows.length > 0;
}

/** Gives a deletion back: due again at once, or, after an error that passes and that `message` tells, a while later. */
export async function releaseDeletion(db: Database, claim: DeletionClaim, message?: string): Promise<void> {
  await own(db, claim)
    .set({
      lease_until: null,
      dispatched_at: null,
      ...(message !== undefined && { due_at: afterPause, last_error: message }),
    })
    .execute();
}

/** Gives a deletion back after an error not known to pass; returns how often that has happened. */
export async function noteDeletionFailure(
  db: Database,
  claim: DeletionClaim,
  message: string,
): Promise<number> {
  const row = await own(db, claim)
    .set((eb) => ({
      lease_until: null,
      dispatched_at: null,
      due_at: afterPause,
      failures: eb('failures', '+', 1),
      last_error: message,
    }))
    .returning('failures')
    .executeTakeFirst();
  return row?.failures ?? 0;
}

function own(db: Database, claim: DeletionClaim) {
  return db
    .updateTable('deletions')
    .where('deletion_id', '=', claim.deletionId)
    .where('attempt', '=', claim.attempt)
    .where('status', '=', 'processing')
    .where('lease_until', 'is not', null);
}

/** Ends a deletion as failed; null if it has ended already. */
export async function failDeletion(
  db: Database,
  deletionId: number,
  failure: { readonly code: string; readonly message: string },
): Promise<(JobIdentity & { readonly environmentId: number }) | null> {
  const row = await db
    .updateTable('deletions')
    .set({
      status: 'failed',
      ended_at: sql`now()`,
      lease_until: null,
      failure_code: failure.code,
      failure_message: failure.message,
    })
    .where('deletion_id', '=', deletionId)
    .where('status', '=', 'processing')
    .returning(['job_id as jobId', 'request_id as requestId', 'environment_id as environmentId'])
    .executeTakeFirst();
  return row ?? null;
}

/** Deletions that run, that nobody is at, and that the queue was not told of for `olderThanMs`; marks them told. */
export async function takeDueDeletions(
  db: Database,
  olderThanMs: number,
): Promise<{ deletionId: number; attempt: number }[]> {
  return db
    .updateTable('deletions')
    .set({ dispatched_at: sql`now()` })
    .where('status', '=', 'processing')
    .where('lease_until', 'is', null)
    .where(isDue('due_at'))
    .where(isToldLongAgo(olderThanMs))
    .returning(['deletion_id as deletionId', 'attempt'])
    .execute();
}

/** Deletions whose worker gave no sign of life: due again. Returns them, with how often each has been lost. */
export async function rescueDeletions(
  db: Database,
): Promise<{ deletionId: number; jobId: string; losses: number }[]> {
  return db
    .updateTable('deletions')
    .set((eb) => ({ lease_until: null, dispatched_at: null, losses: eb('losses', '+', 1) }))
    .where('status', '=', 'processing')
    .where(isLapsed('lease_until'))
    .returning(['deletion_id as deletionId', 'job_id as jobId', 'losses'])
    .execute();
}

/** Forgets deletions that ended long ago, and with them the ids they were asked for; how many. */
export async function forgetDeletions(db: Database, days: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('deletions')
    .where('ended_at', '<', sql<Date>`now() - ${days} * interval '1 day'`)
    .executeTakeFirst();
  return Number(numDeletedRows);
}
