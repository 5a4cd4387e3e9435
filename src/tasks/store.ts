// Stores tasks, which are the units of background work. A task is inserted in the transaction that
// needs the work. A waiting task has no lease. A worker that claims a task gets a lease and a new
// attempt number. The transaction that writes the result ends with `endTask`, which deletes the
// task. If the claim no longer owns the task, `endTask` throws `LostClaim` and the transaction is
// rolled back. This is the fence. A transaction that updates both a task and its load, export or
// deletion locks the task first. Otherwise, it could deadlock with a cancellation. `rescueTasks`
// frees tasks whose lease has lapsed. Start reading at `findNextTasks`.
import { hostname } from 'node:os';
import { type RawBuilder, sql } from 'kysely';
import { ConflictError } from '../base/errors.ts';
import { LEASE_MS } from '../base/limits.ts';
import type { DueTask, Task, TaskClaim, TaskKindName } from '../domain/task.ts';
import {
  columnOf,
  type Database,
  findValue,
  firstRow,
  hasRows,
  isTrue,
  prepared,
  rowsOf,
} from '../postgres/database.ts';
import { isLapsed, leaseFor } from './worker-store.ts';

/** Number of lost workers after which a task runs alone (`sluice work --only`). */
export const SUSPECT_LOSSES = 2;
const MAX_WORKER_NAME_CHARS = 100;

/**
 * Condition that a task can be claimed: no worker owns it, and its pause is over. If the clock has
 * been set back, the pause may begin in the future. Such a pause also counts as over.
 */
export const isDue = sql<boolean>`(
  t.lease_until is null
  and (t.not_before <= now() or t.waiting_since > now() + ${sql.lit(LEASE_MS)} * interval '1 millisecond')
)`;

const taskColumns = sql`
  t.task_id as "taskId",
  t.kind,
  t.subject_id as "subjectId",
  t.part,
  t.environment_id as "environmentId",
  t.job_id as "jobId",
  t.request_id as "requestId",
  t.attempt,
  t.failures`;

/** Condition that the claim still owns its task. All writes of a claim require this condition. */
export function isOwn({ taskId, attempt }: Pick<TaskClaim, 'taskId' | 'attempt'>): RawBuilder<boolean> {
  return sql<boolean>`(task_id = ${taskId} and attempt = ${attempt} and lease_until is not null)`;
}

export function insertTask(db: Database, task: Omit<Task, 'taskId'>): Promise<DueTask | null> {
  return firstRow<DueTask>(prepared(db))`
    insert into tasks as t (kind, subject_id, part, environment_id, job_id, request_id, notified_at)
    values (
      ${task.kind}, ${task.subjectId}, ${task.part}, ${task.environmentId}, ${task.jobId}, ${task.requestId}, now()
    )
    on conflict (kind, subject_id, part) do nothing
    returning t.task_id as "taskId", t.kind, t.attempt`;
}

export function deleteTasks(
  db: Database,
  kinds: readonly TaskKindName[],
  subjectId: number,
): Promise<number[]> {
  return columnOf<number>(db)`
    delete from tasks where subject_id = ${subjectId} and kind = any (${[...kinds]}::text[]) returning task_id`;
}

export function hasTasks(db: Database, kinds: readonly TaskKindName[], subjectId: number): Promise<boolean> {
  return hasRows(db)`
    select 1 from tasks where subject_id = ${subjectId} and kind = any (${[...kinds]}::text[]) limit 1`;
}

/**
 * Takes running tasks away from their workers, so that new attempts start. The interrupted attempts
 * do not count as failures.
 */
export async function restartTasks(db: Database, kind: TaskKindName, environmentId: number): Promise<void> {
  await sql`
    update tasks
    set ${waiting(0)}
    where kind = ${kind} and environment_id = ${environmentId} and lease_until is not null`.execute(db);
}

/** Returns true if at least one task is due or owned by a worker. */
export function hasActiveTasks(db: Database, kinds: readonly TaskKindName[]): Promise<boolean> {
  return isTrue(prepared(db))`
    select exists (
      select 1 from tasks t where t.kind = any (${[...kinds]}::text[]) and (t.lease_until is not null or ${isDue})
    ) as "hasActiveTasks"`;
}

interface NextTask {
  readonly kind: TaskKindName;
  readonly environmentId: number;
}

/**
 * Returns up to `limit` pairs of kind and environment. A worker tries to claim a task of the first
 * pair, then of the next one. One pair is not enough, because other workers may claim all its tasks
 * first. If tasks were claimed in the order of arrival, an environment with many early tasks would
 * get all workers. Therefore, the environment with the fewest running tasks is first. Among
 * environments with equally many running tasks, the one that this process served longest ago is
 * first (`served` is in this order). Tasks that have lost too many workers are excluded (see
 * `findSuspect`).
 */
export function findNextTasks(
  db: Database,
  kinds: readonly TaskKindName[],
  served: readonly number[],
  limit: number,
): Promise<NextTask[]> {
  return rowsOf<NextTask>(prepared(db))`
    with recursive waiting as (${firstOfEach('waiting', kinds, sql`${isDue} and t.losses < ${SUSPECT_LOSSES}`)}),
    running as (
      select environment_id, count(*) as under_way
      from tasks
      where kind = any (${[...kinds]}::text[]) and lease_until is not null
      group by environment_id
    )
    select kind, environment_id as "environmentId"
    from waiting
    left join running using (environment_id)
    order by
      coalesce(under_way, 0),
      array_position(${[...served]}::integer[], environment_id) nulls first,
      task_id
    limit ${limit}`;
}

/**
 * Returns a query for a `with recursive` clause, in which the query must be named `name`. The query
 * finds the first task of each kind and environment. It uses the index to skip from one such task
 * to the next.
 */
export function firstOfEach(
  name: string,
  kinds: readonly TaskKindName[],
  condition: RawBuilder<unknown>,
): RawBuilder<unknown> {
  const first = (after: RawBuilder<unknown>) => sql`
    select t.kind, t.environment_id, t.task_id
    from tasks t
    where ${after} and ${condition}
    order by t.environment_id, t.task_id
    limit 1`;
  return sql`
    select task.*
    from unnest(${[...kinds]}::text[]) as k (kind)
    cross join lateral (${first(sql`t.kind = k.kind`)}) task
    union all
    select task.*
    from ${sql.ref(name)} w
    cross join lateral (${first(sql`t.kind = w.kind and t.environment_id > w.environment_id`)}) task`;
}

const workerName = `${hostname()} ${process.pid}`.slice(0, MAX_WORKER_NAME_CHARS);

const claim = sql`
  set attempt = t.attempt + 1, lease_until = ${leaseFor()}, claimed_at = now(), worker = ${workerName}`;

/**
 * Claims the first due task of a kind and environment. Returns `null` if there is none. With
 * `maxOfGroup`, a lock prevents two claims of this kind at the same time, because together they
 * could exceed the limit.
 */
export async function claimNextTask(
  db: Database,
  next: NextTask,
  maxOfGroup: number | null = null,
): Promise<TaskClaim | null> {
  if (maxOfGroup === null) return claimFirst(db, next, sql`true`);
  return db.transaction().execute(async (transaction) => {
    await sql`select pg_advisory_xact_lock(${groupLock}, hashtext(${next.kind}))`.execute(transaction);
    const isFree = sql`(
      t.group_id is null
      or (
        select count(*)
        from tasks o
        where o.kind = t.kind and o.group_id = t.group_id and o.lease_until is not null
      ) < ${maxOfGroup}
    )`;
    return claimFirst(transaction, next, isFree);
  });
}

/** Spells GRUP. First key of the advisory lock in `claimNextTask`. */
const groupLock = 0x47525550;

function claimFirst(
  db: Database,
  { kind, environmentId }: NextTask,
  isFree: RawBuilder<unknown>,
): Promise<TaskClaim | null> {
  return firstRow<TaskClaim>(prepared(db))`
    update tasks t
    ${claim}
    where task_id = (
      select t.task_id
      from tasks t
      where t.kind = ${kind} and t.environment_id = ${environmentId} and ${isDue} and t.losses < ${SUSPECT_LOSSES} and ${isFree}
      order by t.task_id
      limit 1
      for update skip locked
    )
    returning ${taskColumns}`;
}

/**
 * Claims a task that is waiting or whose worker has vanished, and counts a vanished worker as a
 * loss. Returns `null` if a worker owns the task, or if the task would reach `maxLosses`.
 */
export function claimTask(db: Database, taskId: number, maxLosses: number): Promise<TaskClaim | null> {
  return firstRow<TaskClaim>(prepared(db))`
    update tasks t
    ${claim}, losses = losses + (lease_until is not null)::int
    where task_id = ${taskId}
      and (lease_until is null or (${isLapsed} and losses < ${maxLosses - 1}))
    returning ${taskColumns}`;
}

/** Thrown if another attempt owns the task, or if the task's subject, such as a load, has ended. */
export class LostClaim extends ConflictError {
  constructor() {
    super('another attempt owns the task, or what it belongs to has ended');
  }
}

/** Renews the lease. Returns false if the claim no longer owns the task. */
export function renewTask(db: Database, claimed: TaskClaim): Promise<boolean> {
  return hasRows(prepared(db))`
    update tasks set lease_until = ${leaseFor()} where ${isOwn(claimed)} returning task_id`;
}

/**
 * Renews the lease, and locks the task until the transaction ends.
 * @throws LostClaim, so that the transaction is rolled back
 */
export async function holdTask(db: Database, claimed: TaskClaim): Promise<void> {
  if (!(await renewTask(db, claimed))) throw new LostClaim();
}

/**
 * Ends the task.
 * @throws LostClaim, so that the transaction is rolled back
 */
export async function endTask(db: Database, claimed: TaskClaim): Promise<void> {
  const isEnded = await hasRows(prepared(db))`delete from tasks where ${isOwn(claimed)} returning task_id`;
  if (!isEnded) throw new LostClaim();
}

/**
 * Releases a recurring task, which becomes due again after `pauseMs`.
 * @throws LostClaim
 */
export async function repeatTask(db: Database, claimed: TaskClaim, pauseMs: number): Promise<void> {
  const isReleased = await hasRows(db)`
    update tasks
    set ${waiting(pauseMs)}, failures = 0, losses = 0, last_error = null
    where ${isOwn(claimed)}
    returning task_id`;
  if (!isReleased) throw new LostClaim();
}

interface Setback {
  readonly message: string | null;
  readonly pauseMs: number;
  readonly counts: boolean;
}

/**
 * Releases the task. Returns the number of its failures, or `null` if the claim no longer owns the
 * task.
 */
export function releaseTask(
  db: Database,
  claimed: TaskClaim,
  setback: Setback | null = null,
): Promise<number | null> {
  return findValue<number>(db)`
    update tasks
    set
      ${waiting(setback?.pauseMs ?? 0)},
      failures = failures + ${setback?.counts === true ? 1 : 0},
      last_error = coalesce(${setback?.message ?? null}, last_error)
    where ${isOwn(claimed)}
    returning failures`;
}

const waiting = (pauseMs: number): RawBuilder<unknown> => sql`
  lease_until = null,
  waiting_since = now(),
  not_before = now() + ${pauseMs} * interval '1 millisecond',
  notified_at = null`;

export interface LostTask extends TaskClaim {
  readonly losses: number;
}

/**
 * Frees the tasks of workers whose heartbeat is overdue, except tasks that are locked. Waiting for
 * their locks could deadlock with a cancellation, which locks the tasks in another order.
 */
export function rescueTasks(db: Database, kinds: readonly TaskKindName[]): Promise<LostTask[]> {
  return rowsOf<LostTask>(prepared(db))`
    update tasks t
    set ${waiting(0)}, losses = losses + 1
    where task_id in (
      select task_id
      from tasks
      where kind = any (${[...kinds]}::text[]) and ${isLapsed}
      for update skip locked
    )
    returning ${taskColumns}, t.losses`;
}

export type Suspect = Pick<Task, 'taskId' | 'kind' | 'part' | 'jobId'>;

/**
 * Returns a random due task that has lost SUSPECT_LOSSES workers and must therefore run alone.
 * `null` if there is no such task.
 */
export function findSuspect(db: Database, kinds: readonly TaskKindName[]): Promise<Suspect | null> {
  return firstRow<Suspect>(prepared(db))`
    select t.task_id as "taskId", t.kind, t.part, t.job_id as "jobId"
    from tasks t
    where t.kind = any (${[...kinds]}::text[]) and ${isDue} and t.losses >= ${SUSPECT_LOSSES}
    order by random()
    limit 1`;
}
