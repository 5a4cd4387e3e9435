import { type NotNull, sql } from 'kysely';
import type { IdOutcome } from '../domain/deletion.ts';
import type { Entity } from '../domain/entity.ts';
import {
  type JobIdentity,
  type Origin,
  originColumns,
  type TaskClaim,
  type TaskFailure,
} from '../domain/task.ts';
import { camel, daysAgo, snake, toFailure } from '../postgres/columns.ts';
import {
  changedBy,
  columnOf,
  type Database,
  hasRows,
  selectWhere,
  updateWhere,
} from '../postgres/database.ts';
import { aheadInLane } from '../tasks/lane-store.ts';
import { deleteTasks, isOwn, restartTasks } from '../tasks/store.ts';
import { leaseFor } from '../tasks/worker-store.ts';
import type { DeletionOptions, DeletionStep } from './seam.ts';

interface NewDeletion extends JobIdentity {
  readonly origin: Origin | null;
  readonly environmentId: number;
  readonly entity: Entity;
  readonly ids: readonly string[];
  readonly purgeExports: boolean;
  readonly options: DeletionOptions;
}

/** Stores a deletion. Must be called in the transaction that has locked the lane. */
export async function insertDeletion(db: Database, { origin, ids, ...deletion }: NewDeletion): Promise<void> {
  const { deletion_id } = await db
    .insertInto('deletions')
    .values({ ...snake({ ...deletion, idsRequested: ids.length }), ...originColumns(origin) })
    .returning('deletion_id')
    .executeTakeFirstOrThrow();
  await sql`
    insert into deletion_ids (deletion_id, position, id)
    select ${deletion_id}, ordinality, id
    from unnest(${[...ids]}::text[]) with ordinality as given (id, ordinality)`.execute(db);
}

export async function beginDeletion(db: Database, claim: TaskClaim) {
  const row = await updateWhere(db, 'deletions', { deletionId: claim.subjectId, status: 'processing' })
    .set({ attempts: claim.attempt })
    .returning(camel('entity', 'purge_exports', 'options'))
    .executeTakeFirst();
  return row ?? null;
}

/**
 * Adds counts to the deletion and renews the lease. This is the last statement of each transaction.
 * A count above zero resets the failure counters of the task. Returns false if another worker owns
 * the task. The caller must then roll back.
 */
export function addStep(db: Database, claim: TaskClaim, step: DeletionStep): Promise<boolean> {
  const hasProgress = Object.values(step).some((count) => count > 0);
  const reset = hasProgress ? sql`, failures = 0, losses = 0, last_error = null` : sql``;
  return hasRows(db)`
    with own as (
      update tasks
      set lease_until = ${leaseFor()}${reset}
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
    returning deletion_id`;
}

/** Reads ids in the order of the request. With `limit`, reads only ids that have no outcome. */
export async function readIds(db: Database, deletionId: number, limit: number | null = null) {
  const rows = await selectWhere(db, 'deletion_ids', { deletionId })
    .select('id')
    .$if(limit !== null, (ids) => ids.where('outcome', 'is', null).limit(limit))
    .orderBy('position')
    .execute();
  return rows.map(({ id }) => id);
}

/** Marks the deletion as completed. Returns false if the worker no longer owns the task. */
export function completeDeletion(db: Database, claim: TaskClaim): Promise<boolean> {
  return hasRows(db)`
    with own as (
      delete from tasks where ${isOwn(claim)} returning subject_id
    )
    update deletions
    set status = 'completed', ended_at = now()
    from own
    where deletion_id = own.subject_id and status = 'processing'
    returning deletion_id`;
}

export async function failDeletion(db: Database, deletionId: number, { code, message }: TaskFailure) {
  await deleteTasks(db, ['deletion'], deletionId);
  const row = await updateWhere(db, 'deletions', { deletionId, status: 'processing' })
    .set({ status: 'failed', ended_at: sql`now()`, failure_code: code, failure_message: message })
    .returning(camel('job_id', 'request_id', 'environment_id'))
    .executeTakeFirst();
  return row ?? null;
}

export function forgetDeletions(db: Database, days: number): Promise<number> {
  return changedBy(db)`delete from deletions where ended_at < ${daysAgo(days)}`;
}

export type Deletion = Awaited<ReturnType<typeof readDeletions>>[number];

/**
 * Returns the deletions in no particular order. Reads the position in the queue only for a single
 * job.
 */
export async function readDeletions(db: Database, environmentId: number, jobIds: readonly string[]) {
  if (jobIds.length === 0) return [];
  const rows = await selectWhere(db, 'deletions', { environmentId })
    .select(camel('deletion_id', 'job_id', 'environment_id', 'entity', 'status', 'purge_exports', 'options'))
    .select(camel('accepted_at', 'started_at', 'ended_at', 'attempts', 'failure_code', 'failure_message'))
    .select([counts, removed, lastError])
    .$if(jobIds.length === 1, (query) => query.select(aheadInLane('deletions').as('ahead')))
    .where('job_id', 'in', jobIds)
    .execute();
  return rows.map(({ failureCode, failureMessage, ahead, ...deletion }) => ({
    ...deletion,
    type: `delete_${deletion.entity}` as const,
    filename: `delete-${deletion.entity}-${deletion.acceptedAt.toISOString().slice(0, 10)}`,
    fileSize: 0,
    totalRows: deletion.counts.requested,
    failure: toFailure(failureCode, failureMessage),
    queuePosition: queuePositionOf(deletion.status, ahead),
  }));
}

function queuePositionOf(status: string, ahead: number | undefined): number | null {
  if (status === 'queued') return ahead ?? null;
  return status === 'processing' ? 0 : null;
}

type Counts<Name extends string> = Readonly<Record<Name, number>>;

const counts = sql<Counts<'requested' | 'deleted' | 'not_found' | 'pending'>>`json_build_object(
  'requested', ids_requested, 'deleted', ids_deleted, 'not_found', ids_not_found,
  'pending', ids_requested - ids_deleted - ids_not_found
)`.as('counts');

const removed = sql<Counts<'events' | 'rejects' | 'files' | 'exports'>>`json_build_object(
  'events', events_removed, 'rejects', rejects_removed, 'files', files_removed, 'exports', exports_removed
)`.as('removed');

const lastError = sql<string | null>`(
  select t.last_error from tasks t where t.kind = 'deletion' and t.subject_id = deletions.deletion_id
)`.as('lastError');

export async function readOutcomes(
  db: Database,
  deletionId: number,
  after: number,
  limit: number,
): Promise<IdOutcome[]> {
  const rows = await selectWhere(db, 'deletion_ids', { deletionId })
    .select(['position', 'id', 'events', 'users', 'outcome'])
    .where('position', '>', after)
    .orderBy('position')
    .limit(limit)
    .execute();
  return rows.map((row) => ({ ...row, outcome: row.outcome ?? 'pending' }));
}

/** The lane decides, because a load that was accepted later may have taken the place of another. */
const earlier = (deletionId: number) => sql<boolean>`exists (
  select 1
  from deletions d
  where d.deletion_id = ${deletionId}
    and d.environment_id = loads.environment_id
    and loads.lane_position < d.lane_position
    and (loads.ended_at is not null or loads.status = 'held')
)`;

export function findKeptFiles(db: Database, deletionId: number, limit: number) {
  return db
    .selectFrom('loads')
    .select(['load_id as loadId', 'file_ref as ref', 'status'])
    .where('file_ref', 'is not', null)
    .where(earlier(deletionId))
    .orderBy('load_id')
    .limit(limit)
    .$narrowType<{ ref: NotNull }>()
    .execute();
}

export function findLoadsWithRejects(db: Database, deletionId: number): Promise<number[]> {
  return columnOf<number>(db)`
    select load_id
    from loads
    where ${earlier(deletionId)} and exists (select 1 from load_rejects r where r.load_id = loads.load_id)
    order by load_id`;
}

/**
 * Restarts the running exports. Their workers notice the restart when they renew the lease. Returns
 * the time of the restart. An export with a later snapshot contains no deleted data.
 */
export async function restartExports(db: Database, environmentId: number): Promise<Date> {
  const { rows } = await sql<{ moment: Date }>`select clock_timestamp() as moment`.execute(db);
  await restartTasks(db, 'export', environmentId);
  return rows[0]?.moment ?? new Date();
}

export function findKeptExports(db: Database, environmentId: number, moment: Date, limit: number) {
  return selectWhere(db, 'exports', { environmentId, status: 'completed' })
    .select(camel('export_id', 'job_id'))
    .where('files_expired_at', 'is', null)
    .where('snapshot_at', '<=', moment)
    .orderBy('export_id')
    .limit(limit)
    .execute();
}

/**
 * Adds the numbers of events that were removed from files, by id. Returns the sum of these numbers.
 */
export async function countErased(
  db: Database,
  deletionId: number,
  counts: ReadonlyMap<string, number>,
): Promise<number> {
  const events = [...counts.values()];
  await sql`
    update deletion_ids i
    set events = i.events + f.events
    from unnest(${[...counts.keys()]}::text[], ${events}::bigint[]) f (id, events)
    where i.deletion_id = ${deletionId} and i.id = f.id`.execute(db);
  return events.reduce((sum, count) => sum + count, 0);
}
