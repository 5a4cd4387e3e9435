import { sql } from 'kysely';
import { openJobs } from '../../../jobs/kinds.ts';
import type { System } from '../../../src/context.ts';
import type { TaskClaim, TaskKindName } from '../../../src/domain/task.ts';
import type { Database } from '../../../src/postgres/database.ts';
import { reconcileTasks } from '../../../src/tasks/reconcile.ts';
import {
  kindOf,
  runTask,
  type StopSignals,
  Turns,
  takeNextTask,
  withoutStop,
} from '../../../src/tasks/run-task.ts';
import { claimTask } from '../../../src/tasks/store.ts';
import type { TaskContext, TaskKind } from '../../../src/tasks/task-kind.ts';

/** Claims the next task but does not run it. Returns `null` if no task is due. */
export function takeTask<C extends TaskContext>(context: C, kind: TaskKind<C>): Promise<TaskClaim | null> {
  return takeNextTask(context, [kind], new Turns());
}

/** Runs due tasks one after another, and counts them. */
export async function runDueTasks<C extends TaskContext>(
  context: C,
  kinds: readonly TaskKind<C>[],
  signals: StopSignals = withoutStop,
): Promise<number> {
  const turns = new Turns();
  let count = 0;
  // If a stop releases a task, the task is immediately due again. The loop ends, so that it does
  // not claim the task a second time.
  while (!signals.stopping.aborted && !signals.deadline.aborted) {
    const claim = await takeNextTask(context, kinds, turns);
    if (claim === null) return count;
    await runTask(context, kindOf(kinds, claim.kind), claim, signals);
    count++;
  }
  return count;
}

export async function makeTasksDue(db: Database, kind: TaskKindName): Promise<void> {
  await sql`update tasks set not_before = now() where kind = ${kind} and lease_until is null`.execute(db);
}

/** Expires leases, as if their workers had sent no heartbeat for too long. */
export async function expireTaskLeases(db: Database, kind: TaskKindName): Promise<void> {
  await sql`
    update tasks set lease_until = now() - interval '1 second'
    where kind = ${kind} and lease_until is not null`.execute(db);
}

export function reconcileJobs(system: System): Promise<void> {
  return reconcileTasks(system, openJobs(system).kinds);
}

/** Claims the task of a subject. Returns `null` if a worker already holds the task. */
export async function claimTaskOf(
  db: Database,
  kind: TaskKindName,
  subjectId: number,
  maxLosses = 10,
): Promise<TaskClaim | null> {
  const { task_id } = await db
    .selectFrom('tasks')
    .select('task_id')
    .where('kind', '=', kind)
    .where('subject_id', '=', subjectId)
    .executeTakeFirstOrThrow();
  return claimTask(db, task_id, maxLosses);
}
