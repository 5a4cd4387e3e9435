import { sql } from 'kysely';
import type { Deletion, IdOutcome } from '../../domain/deletion.ts';
import type { Entity } from '../../domain/entity.ts';
import { type Origin, originColumns } from '../../domain/origin.ts';
import type { DueTask, JobIdentity, TaskClaim, TaskFailure } from '../../domain/task.ts';
import { camel, snake, toFailure } from '../columns.ts';
import type { Database } from '../database.ts';
import { leaseFor } from '../lease.ts';
import { aheadInLane } from './lanes.ts';
import { deleteTasks, insertTask, isOwn } from './tasks.ts';

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

/** Queues a deletion in its lane. Call it in the transaction that holds the lane's lock. */
export async function insertDeletion(
  db: Database,
  { jobId, requestId, origin, environmentId, entity, ids, purgeExports }: NewDeletion,
): Promise<void> {
  const { deletion_id } = await db
    .insertInto('deletions')
    .values({
      ...snake({ jobId, requestId, environmentId, entity, purgeExports, idsRequested: ids.length }),
      ...originColumns(origin),
    })
    .returning('deletion_id')
    .executeTakeFirstOrThrow();
  await sql`
    insert into deletion_ids (deletion_id, position, id)
    select ${deletion_id}, ordinality, id
    from unnest(${[...ids]}::text[]) with ordinality as given (id, ordinality)`.execute(db);
}

/** A deletion that has just been started, and the task to notify the queue of. */
export interface StartedDeletion extends JobIdentity {
  readonly tasks: readonly DueTask[];
}

/** Starts a queued deletion with its task. Returns `null` if it is no longer queued. */
export async function startDeletion(db: Database, deletionId: number): Promise<StartedDeletion | null> {
  const deletion = await db
    .updateTable('deletions')
    .set({ status: 'processing', started_at: sql`coalesce(started_at, now())` })
    .where('deletion_id', '=', deletionId)
    .where('status', '=', 'queued')
    .returning(camel('job_id', 'request_id', 'environment_id'))
    .executeTakeFirst();
  if (deletion === undefined) return null;
  const task = await insertTask(db, { kind: 'deletion', subjectId: deletionId, part: 0, ...deletion });
  return { ...deletion, tasks: task === null ? [] : [task] };
}

/** Begins an attempt. Returns `null` if the deletion has ended. */
export async function beginDeletion(db: Database, claim: TaskClaim): Promise<DeletionWork | null> {
  const row = await db
    .updateTable('deletions')
    .set({ attempts: claim.attempt })
    .where('deletion_id', '=', claim.subjectId)
    .where('status', '=', 'processing')
    .returning(camel('entity', 'purge_exports'))
    .executeTakeFirst();
  return row ?? null;
}

/** The numbers that one transaction of a deletion removed. */
export interface DeletionStep {
  readonly deleted?: number;
  readonly notFound?: number;
  readonly events?: number;
  readonly rejects?: number;
  readonly files?: number;
  readonly exports?: number;
}

/**
 * The fence, the last statement of each transaction of a deletion: adds what was done and renews the lease. Progress resets the counts of
 * errors and losses. Returns false if the task is no longer ours; the caller must then roll back.
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

/** Reads up to `limit` ids without an outcome, in the order of the request. */
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

export async function readIds(db: Database, deletionId: number): Promise<string[]> {
  const rows = await db
    .selectFrom('deletion_ids')
    .select('id')
    .where('deletion_id', '=', deletionId)
    .orderBy('position')
    .execute();
  return rows.map(({ id }) => id);
}

/** The last fence: completes the deletion. Returns false if the task is no longer ours. */
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

/** Fails a deletion. Returns `null` if it has ended already. */
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
    .returning(camel('job_id', 'request_id', 'environment_id'))
    .executeTakeFirst();
  return row ?? null;
}

/** Deletes deletions that ended `days` ago, with their ids. Returns the number. */
export async function forgetDeletions(db: Database, days: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('deletions')
    .where('ended_at', '<', sql<Date>`now() - ${days} * interval '1 day'`)
    .executeTakeFirst();
  return Number(numDeletedRows);
}

/** Reads the environment's deletions of these ids, in no order; the place in the lane only if there is one id. */
export async function readDeletions(
  db: Database,
  environmentId: number,
  jobIds: readonly string[],
): Promise<Deletion[]> {
  if (jobIds.length === 0) return [];
  const rows = await db
    .selectFrom('deletions')
    .select(camel('deletion_id', 'job_id', 'environment_id', 'entity', 'status', 'purge_exports'))
    .select(camel('accepted_at', 'started_at', 'ended_at', 'attempts', 'failure_code', 'failure_message'))
    .select([counts, removed, lastError])
    .$if(jobIds.length === 1, (query) => query.select(aheadInLane('deletions').as('ahead')))
    .where('environment_id', '=', environmentId)
    .where('job_id', 'in', jobIds)
    .execute();
  return rows.map(({ failureCode, failureMessage, ahead, ...deletion }) => ({
    ...deletion,
    failure: toFailure(failureCode, failureMessage),
    queuePosition:
      deletion.status === 'queued' ? (ahead ?? null) : deletion.status === 'processing' ? 0 : null,
  }));
}

const counts = sql<Deletion['counts']>`json_build_object(
  'requested', ids_requested, 'deleted', ids_deleted, 'not_found', ids_not_found
)`.as('counts');

const removed = sql<Deletion['removed']>`json_build_object(
  'events', events_removed, 'rejects', rejects_removed, 'files', files_removed, 'exports', exports_removed
)`.as('removed');

/** The last error of a deletion that runs. */
const lastError = sql<string | null>`(
  select t.last_error from tasks t where t.kind = 'deletion' and t.subject_id = deletions.deletion_id
)`.as('lastError');

/** Reads up to `limit` ids after the position `after`, in the order of the request. */
export async function readOutcomes(
  db: Database,
  deletionId: number,
  after: number,
  limit: number,
): Promise<IdOutcome[]> {
  const rows = await db
    .selectFrom('deletion_ids')
    .select(['position', 'id', 'events', 'users', 'outcome'])
    .where('deletion_id', '=', deletionId)
    .where('position', '>', after)
    .orderBy('position')
    .limit(limit)
    .execute();
  return rows.map((row) => ({ ...row, outcome: row.outcome ?? 'pending' }));
}
