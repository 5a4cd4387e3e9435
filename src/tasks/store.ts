/*
 * Tasks: the background work that waits or is under way, of every kind. A task is made by the transaction that makes it
 * necessary, waits (no lease), is claimed (a lease, a new attempt number), and is deleted by the transaction that writes what it
 * did: the fence, `endTask`, is that transaction's last statement. A worker that vanishes lets its lease lapse; `rescueTasks`
 * lets the task wait again. Begin with `findNextTasks`, which says whose turn it is; src/tasks/ calls all of this.
 */
import { hostname } from 'node:os';
import { type RawBuilder, sql } from 'kysely';
import { LEASE_MS } from '../base/limits.ts';
import type { DueTask, Task, TaskClaim, TaskKindName } from '../domain/task.ts';
import { columnOf, type Database, findValue, firstRow, hasRows, rowsOf } from '../postgres/database.ts';
import { isLapsed, isNotifiedLongAgo, leaseFor } from './worker-store.ts';

/** A task whose worker vanished this often is done from then on where it can end no other's (`sluice work --only`). */
export const SUSPECT_LOSSES = 2;
const MAX_WORKER_NAME_CHARS = 100;

/** A task is due if nobody has it and its pause is over. If it waits since the future, the database's clock went back: no pause. */
const isDue = sql<boolean>`(
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

/** The claim's own row, while it is: what every write of a claim is fenced by. */
export function isOwn({ taskId, attempt }: Pick<TaskClaim, 'taskId' | 'attempt'>): RawBuilder<boolean> {
  return sql<boolean>`(task_id = ${taskId} and attempt = ${attempt} and lease_until is not null)`;
}

export function insertTask(db: Database, task: Omit<Task, 'taskId'>): Promise<DueTask | null> {
  return firstRow<DueTask>(db)`
    insert into tasks as t (kind, subject_id, part, environment_id, job_id, request_id, notified_at)
    values (
      ${task.kind}, ${task.subjectId}, ${task.part}, ${task.environmentId}, ${task.jobId}, ${task.requestId}, now()
    )
    on conflict (kind, subject_id, part) do nothing
    returning t.task_id as "taskId", t.kind, t.attempt`;
}

/** Whatever is still to be done for a subject need not be done any more; returns the ids of its tasks. */
export function deleteTasks(
  db: Database,
  kinds: readonly TaskKindName[],
  subjectId: number,
): Promise<number[]> {
  return columnOf<number>(db)`
    delete from tasks where subject_id = ${subjectId} and kind = any (${[...kinds]}::text[]) returning task_id`;
}

/** Takes the running tasks of an environment from their workers; they begin anew, and no attempt counts against them. */
export async function restartTasks(db: Database, kind: TaskKindName, environmentId: number): Promise<void> {
  await sql`
    update tasks
    set ${waiting(0)}
    where kind = ${kind} and environment_id = ${environmentId} and lease_until is not null`.execute(db);
}

export interface NextTask {
  readonly kind: TaskKindName;
  readonly environmentId: number;
}

/**
 * Finds whose turn it is: up to `limit` kinds and environments, since others may take the first ones meanwhile. The queue only
 * says that something is due: first come, first served, it would give all its workers to whoever asked for most. Here environments
 * take turns: first the one with the fewest tasks under way, among equals the one that was served longest ago (`served`, longest
 * ago first). No environment gets another task while one with fewer under way waits.
 *
 * Tasks that lost their worker before are left out: see `findSuspect`.
 */
export function findNextTasks(
  db: Database,
  kinds: readonly TaskKindName[],
  served: readonly number[],
  limit: number,
): Promise<NextTask[]> {
  return rowsOf<NextTask>(db)`
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

/** The recursive query `name`: the first matching task of each kind and environment, stepping from one to the next in the index. */
function firstOfEach(
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
    select found.*
    from unnest(${[...kinds]}::text[]) as wanted (kind)
    cross join lateral (${first(sql`t.kind = wanted.kind`)}) found
    union all
    select found.*
    from ${sql.ref(name)} w
    cross join lateral (${first(sql`t.kind = w.kind and t.environment_id > w.environment_id`)}) found`;
}

const ownName = `${hostname()} ${process.pid}`.slice(0, MAX_WORKER_NAME_CHARS);

const claim = sql`
  set attempt = t.attempt + 1, lease_until = ${leaseFor()}, claimed_at = now(), worker = ${ownName}`;

/** Claims the first due task of a kind and environment, or `null`. `maxOfGroup` bounds a group's tasks under way: such claims queue. */
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

/** Spells GRUP: the class half of a two-key advisory lock. */
const groupLock = 0x47525550;

function claimFirst(
  db: Database,
  { kind, environmentId }: NextTask,
  isFree: RawBuilder<unknown>,
): Promise<TaskClaim | null> {
  return firstRow<TaskClaim>(db)`
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

/** Claims one task; `null` if it is done or claimed. Counts the loss of a vanished worker; `rescueTasks` gets the one too many. */
export function claimTask(db: Database, taskId: number, maxLosses: number): Promise<TaskClaim | null> {
  return firstRow<TaskClaim>(db)`
    update tasks t
    ${claim}, losses = losses + (lease_until is not null)::int
    where task_id = ${taskId}
      and (lease_until is null or (${isLapsed} and losses < ${maxLosses - 1}))
    returning ${taskColumns}`;
}

/** Prolongs the lease, and fences what a claim writes. Returns false if the task is no longer its own. */
export function renewTask(db: Database, claimed: TaskClaim): Promise<boolean> {
  return hasRows(db)`
    update tasks set lease_until = ${leaseFor()} where ${isOwn(claimed)} returning task_id`;
}

/** The fence: ends the task. Returns false if it is no longer the claim's own; the caller must then roll back. */
export function endTask(db: Database, claimed: TaskClaim): Promise<boolean> {
  return hasRows(db)`delete from tasks where ${isOwn(claimed)} returning task_id`;
}

/** The fence of recurring work: the task waits again. Returns false if it is no longer the claim's own. */
export function repeatTask(db: Database, claimed: TaskClaim, pauseMs: number): Promise<boolean> {
  return hasRows(db)`
    update tasks
    set ${waiting(pauseMs)}, failures = 0, losses = 0, last_error = null
    where ${isOwn(claimed)}
    returning task_id`;
}

export interface Setback {
  readonly message: string | null;
  readonly pauseMs: number;
  readonly counts: boolean;
}

/** Gives a task back. Returns how many errors have counted, or null when it is no longer the claim's own. */
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

/** Makes tasks due again whose worker gave no sign of life. */
export function rescueTasks(db: Database, kinds: readonly TaskKindName[]): Promise<LostTask[]> {
  return rowsOf<LostTask>(db)`
    update tasks t
    set ${waiting(0)}, losses = losses + 1
    where kind = any (${[...kinds]}::text[]) and ${isLapsed}
    returning ${taskColumns}, t.losses`;
}

export interface UnnotifiedTask extends DueTask {
  /** The queue was notified before, and nothing of the kind and environment is under way: whoever took it along may have died. */
  readonly again: boolean;
}

/** Tasks of a kind and environment that are in the queue at once; the rest follow as these get done. */
export const NOTIFIED_TASKS = 1_000;
/** Tasks that are notified again if nothing of their kind and environment is running. */
const repeatedTasks = 8;

/** Marks due tasks as notified that the queue was not notified of for `olderThanMs`, and returns them. */
export async function takeUnnotifiedTasks(
  db: Database,
  kinds: readonly TaskKindName[],
  olderThanMs: number,
): Promise<UnnotifiedTask[]> {
  const { rows } = await sql<UnnotifiedTask>`
    with recursive groups as (${firstOfEach('groups', kinds, sql`t.lease_until is null`)}),
    unnotified as (
      select head.task_id, stands_still and is_notified as again
      from groups g
      cross join lateral (
        select not exists (
          select 1
          from tasks t
          where t.kind = g.kind and t.environment_id = g.environment_id and t.lease_until is not null
        ) as stands_still
      ) state
      cross join lateral (
        select t.task_id, t.notified_at is not null as is_notified, ${isDue} and ${isNotifiedLongAgo(olderThanMs, 't.notified_at')} as is_meant
        from tasks t
        where t.kind = g.kind and t.environment_id = g.environment_id and t.lease_until is null
        order by t.task_id
        limit case when stands_still then ${sql.lit(repeatedTasks)} else ${sql.lit(NOTIFIED_TASKS)} end
      ) head
      where is_meant
    ),
    free as (
      select t.task_id from tasks t join unnotified using (task_id) for update of t skip locked
    )
    update tasks t
    set notified_at = now()
    from unnotified u
    where u.task_id = t.task_id and t.task_id in (select task_id from free) and t.lease_until is null
    returning t.task_id as "taskId", t.kind, t.attempt, u.again`.execute(db);
  return rows.sort((a, b) => a.taskId - b.taskId);
}

export type Suspect = Pick<Task, 'taskId' | 'kind' | 'part' | 'jobId'>;

/** Finds a due task that lost its worker SUSPECT_LOSSES times, in random order, to be done where it can end no other. */
export function findSuspect(db: Database, kinds: readonly TaskKindName[]): Promise<Suspect | null> {
  return firstRow<Suspect>(db)`
    select t.task_id as "taskId", t.kind, t.part, t.job_id as "jobId"
    from tasks t
    where t.kind = any (${[...kinds]}::text[]) and ${isDue} and t.losses >= ${SUSPECT_LOSSES}
    order by random()
    limit 1`;
}
