import { sql } from 'kysely';
import type { JobIdentity } from '../../domain/job-fields.ts';
import { MAX_CHUNK_LOSSES } from '../../domain/limits.ts';
import type { Tally } from '../../domain/tally.ts';
import type { Database } from '../database.ts';
import { afterPause, isLapsed, leaseFor } from './lease.ts';

/** One attempt at finishing a load whose chunks are all done. */
export interface FinishClaim extends JobIdentity {
  readonly loadId: number;
  readonly environmentId: number;
  readonly attempt: number;
  /** Keys may stand in several chunks and some rows were not marked: see `resolveRepeats`. */
  readonly repeatsToResolve: boolean;
}

/**
 * Chunks that left no mark of a key they met; and companies that may have been written on behalf of a user first and
 * by a record of their own later, which then was not counted.
 */
const unresolved = sql`
  select
  from load_chunk_keys k
  where k.load_id = loads.load_id
    and (
      k.unchanged <> '{}'
      or (
        k.entity = 'companies'
        and loads.entity = 'auto'
        and exists (select from load_chunk_keys u where u.load_id = k.load_id and u.entity = 'users')
      )
    )`;

/**
 * Null if the load is not ready to be finished, or another worker is at it. One whose worker vanished counts as lost by that;
 * the loss that is one too many is left to `rescueFinishes`.
 */
export async function claimFinish(db: Database, loadId: number): Promise<FinishClaim | null> {
  const row = await db
    .updateTable('loads')
    .set((eb) => ({
      finish_attempt: eb('finish_attempt', '+', 1),
      finish_lease_until: leaseFor(),
      finish_losses: sql<number>`finish_losses + (finish_lease_until is not null)::int`,
    }))
    .where('load_id', '=', loadId)
    .where('status', '=', 'processing')
    .whereRef('chunks_done', '=', 'chunk_count')
    .where((eb) =>
      eb.or([
        eb('finish_lease_until', 'is', null),
        eb.and([isLapsed('finish_lease_until'), eb('finish_losses', '<', MAX_CHUNK_LOSSES - 1)]),
      ]),
    )
    .returning([
      'job_id',
      'request_id',
      'environment_id',
      'finish_attempt',
      sql<boolean>`repeats_resolved_at is null
        and chunk_count > 1
        and (attempts > 1 or dry_run or exists (${unresolved}))`.as('repeats'),
    ])
    .executeTakeFirst();
  if (row === undefined) return null;
  return {
    loadId,
    jobId: row.job_id,
    requestId: row.request_id,
    environmentId: row.environment_id,
    attempt: row.finish_attempt,
    repeatsToResolve: row.repeats,
  };
}

/** Gives the finish back: due again at once, or after a pause if it ran into something, which `message` tells. */
export async function releaseFinish(db: Database, claim: FinishClaim, message?: string): Promise<void> {
  await owned(db, claim)
    .set({
      finish_lease_until: null,
      ...(message !== undefined && { finish_due_at: afterPause, finish_error: message }),
    })
    .execute();
}

/** Gives the finish back after an error not known to pass, due a while later; returns how often that has happened. */
export async function failFinish(db: Database, claim: FinishClaim, message: string): Promise<number> {
  const row = await owned(db, claim)
    .set((eb) => ({
      finish_lease_until: null,
      finish_due_at: afterPause,
      finish_failures: eb('finish_failures', '+', 1),
      finish_error: message,
    }))
    .returning('finish_failures')
    .executeTakeFirst();
  return row?.finish_failures ?? 0;
}

/** Prolongs the lease, and fences what a finisher writes: false when the claim is not ours any more. */
export async function holdsFinish(db: Database, claim: FinishClaim): Promise<boolean> {
  return (
    (await owned(db, claim).set({ finish_lease_until: leaseFor() }).returning('load_id').execute()).length > 0
  );
}

function owned(db: Database, claim: FinishClaim) {
  return db
    .updateTable('loads')
    .where('load_id', '=', claim.loadId)
    .where('status', '=', 'processing')
    .where('finish_attempt', '=', claim.attempt);
}

/** Loads whose finisher gave no sign of life: due again. Returns them, with how often each has been lost. */
export async function rescueFinishes(
  db: Database,
): Promise<(JobIdentity & { readonly loadId: number; readonly losses: number })[]> {
  return db
    .updateTable('loads')
    .set((eb) => ({ finish_lease_until: null, finish_losses: eb('finish_losses', '+', 1) }))
    .where('status', '=', 'processing')
    .where(isLapsed('finish_lease_until'))
    .returning(['load_id as loadId', 'job_id as jobId', 'request_id as requestId', 'finish_losses as losses'])
    .execute();
}

export interface FinishState {
  readonly totalRows: number;
  /** Chunks that are not done; none, if the counter of done chunks tells the truth. */
  readonly openChunks: number;
  readonly maxErrors: number | null;
  readonly tally: Tally;
}

export async function readFinishState(db: Database, loadId: number): Promise<FinishState> {
  const row = await db
    .selectFrom('loads')
    .select([
      'total_rows',
      'max_errors',
      'rows_read',
      'rows_inserted',
      'rows_updated',
      'rows_unchanged',
      'rows_superseded',
      'rows_rejected',
      sql<number>`(
        select count(*)
        from load_chunks c
        where c.load_id = loads.load_id and c.state <> 'done'
      )`.as('open_chunks'),
    ])
    .where('load_id', '=', loadId)
    .executeTakeFirstOrThrow();
  return {
    totalRows: row.total_rows,
    openChunks: row.open_chunks,
    maxErrors: row.max_errors,
    tally: {
      read: row.rows_read,
      inserted: row.rows_inserted,
      updated: row.rows_updated,
      unchanged: row.rows_unchanged,
      superseded: row.rows_superseded,
      rejected: row.rows_rejected,
    },
  };
}

/** Completes the load and forgets what only a running load needs. */
export async function completeLoad(db: Database, claim: FinishClaim): Promise<void> {
  await owned(db, claim)
    .set({ status: 'completed', ended_at: sql`now()`, finish_lease_until: null })
    .execute();
  await db.deleteFrom('load_chunk_keys').where('load_id', '=', claim.loadId).execute();
  await db.deleteFrom('load_replays').where('load_id', '=', claim.loadId).execute();
}
