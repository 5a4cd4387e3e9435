import { sql } from 'kysely';
import type { DueTask, TaskKindName } from '../domain/task.ts';
import { type Database, prepared } from '../postgres/database.ts';
import { firstOfEach, isDue } from './store.ts';
import { isNotifiedLongAgo } from './worker-store.ts';

interface UnnotifiedTask extends DueTask {
  /**
   * True if a notice of the task was sent before, but no task of its kind and environment is
   * running. The worker that received the notice may be dead.
   */
  readonly again: boolean;
}

/**
 * For each kind and environment, notices are sent for at most this many waiting tasks at a time.
 */
export const NOTIFIED_TASKS = 1_000;
/** This lower maximum applies if no task of the kind is running in the environment. */
const repeatedTasks = 8;

/**
 * Returns due tasks without a notice, or with a notice that is older than `olderThanMs`. Records a
 * new notice for each.
 */
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
    returning t.task_id as "taskId", t.kind, t.attempt, u.again`.execute(prepared(db));
  return rows.sort((a, b) => a.taskId - b.taskId);
}
