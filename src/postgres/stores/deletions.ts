import { sql } from 'kysely';
import type { Deletion, DeletionOutcome, DeletionStatus, IdOutcome } from '../../domain/deletion.ts';
import type { Entity } from '../../domain/entity.ts';
import { type Origin, originColumns } from '../../domain/origin.ts';
import type { DueTask, JobIdentity, TaskClaim, TaskFailure } from '../../domain/task.ts';
import type { Database } from '../database.ts';
import { leaseFor } from '../lease.ts';
import { aheadInLane } from './lanes.ts';
import { deleteTasks, insertTask, isOwn } from './tasks.ts';

/** What a worker must know of a deletion. */
export interface DeletionWork {
  readonly entity: Entity;
  readonly purgeExports: boolean;
}

export interface NewDeletion extends JobIdentity {
  readonly origin: Origin | null;
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
      ...originColumns(asked.origin),
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

/** A deletion that has just been started, and the task that the queue is to be notified of. */
export interface StartedDeletion extends JobIdentity {
  readonly tasks: readonly DueTask[];
}

/** Queued → processing, with its task. Null if it is no longer queued. */
export async function startDeletion(db: Database, deletionId: number): Promise<StartedDeletion | null> {
  const deletion = await db
    .updateTable('deletions')
    .set({ status: 'processing', started_at: sql`coalesce(started_at, now())` })
    .where('deletion_id', '=', deletionId)
    .where('status', '=', 'queued')
    .returning(['job_id as jobId', 'request_id as requestId', 'environment_id as environmentId'])
    .executeTakeFirst();
  if (deletion === undefined) return null;
  const task = await insertTask(db, { kind: 'deletion', subjectId: deletionId, part: 0, ...deletion });
  return { ...deletion, tasks: task === null ? [] : [task] };
}

/** Notes that an attempt begins; what it is about. Null if the deletion has ended. */
export async function beginDeletion(db: Database, claim: TaskClaim): Promise<DeletionWork | null> {
  const row = await db
    .updateTable('deletions')
    .set({ attempts: claim.attempt })
    .where('deletion_id', '=', claim.subjectId)
    .where('status', '=', 'processing')
    .returning(['entity', 'purge_exports'])
    .executeTakeFirst();
  return row === undefined ? null : { entity: row.entity as Entity, purgeExports: row.purge_exports };
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
 * The fence, the last statement of each transaction of a deletion: adds up what was done and prolongs the lease; errors and losses are
 * counted anew if that is anything, since those in a row count. False when it is no longer ours, and the caller must roll back.
 */
export async function addStep(db: Database, claim: TaskClaim, step: DeletionStep): Promise<boolean> {
  const gotOn = Object.values(step).some((count) => count > 0);
  const anew = gotOn ? sql`, failures = 0, losses = 0, last_error = null` : sql``;
  const { rows } = await sql`
    with own as (
      update tasks
      set lease_until = ${leaseFor()}${anew}
      where ${isOwn(claim)}
      returning subject_id
    )
    update deletions
    set
      ids_deleted = ids_deleted + ${step.deleted ?? 0},
      ids_not_found = ids_not_found + ${step.notFound ?? 0},
      events_removed = events_removed + ${step.events ?? 0},
      rejects_removed = rejects_removed + ${step.rejects ?? 0},
      files_removed = files_removed + ${step.files ?? 0},
      exports_removed = exports_removed + ${step.exports ?? 0}
    from own
    where deletion_id = own.subject_id and status = 'processing'
    returning deletion_id`.execute(db);
  return rows.length > 0;
}

/** Up to `limit` ids of which nothing is known yet, in the order of the request. */
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

/** All ids of a deletion. */
export async function readIds(db: Database, deletionId: number): Promise<string[]> {
  const rows = await db
    .selectFrom('deletion_ids')
    .select('id')
    .where('deletion_id', '=', deletionId)
    .orderBy('position')
    .execute();
  return rows.map(({ id }) => id);
}

/** Processing → completed. The fence: false when it is no longer ours. */
export async function completeDeletion(db: Database, claim: TaskClaim): Promise<boolean> {
  const { rows } = await sql`
    with own as (
      delete from tasks where ${isOwn(claim)} returning subject_id
    )
    update deletions
    set status = 'completed', ended_at = now()
    from own
    where deletion_id = own.subject_id and status = 'processing'
    returning deletion_id`.execute(db);
  return rows.length > 0;
}

/** Processing → failed. Null if it has ended already. */
export async function failDeletion(
  db: Database,
  deletionId: number,
  failure: TaskFailure,
): Promise<(JobIdentity & { readonly environmentId: number }) | null> {
  await deleteTasks(db, ['deletion'], deletionId);
  const row = await db
    .updateTable('deletions')
    .set({
      status: 'failed',
      ended_at: sql`now()`,
      failure_code: failure.code,
      failure_message: failure.message,
    })
    .where('deletion_id', '=', deletionId)
    .where('status', '=', 'processing')
    .returning(['job_id as jobId', 'request_id as requestId', 'environment_id as environmentId'])
    .executeTakeFirst();
  return row ?? null;
}

/** Forgets deletions that ended long ago, and with them the ids they were asked for; how many. */
export async function forgetDeletions(db: Database, days: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('deletions')
    .where('ended_at', '<', sql<Date>`now() - ${days} * interval '1 day'`)
    .executeTakeFirst();
  return Number(numDeletedRows);
}

/** What the last try of one that runs ran into. */
const lastError = sql<string | null>`(
  select t.last_error from tasks t where t.kind = 'deletion' and t.subject_id = deletions.deletion_id
)`.as('last_error');

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
    .select(lastError)
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
      attempts: row.attempts,
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
      lastError: row.last_error,
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
