import { sql } from 'kysely';
import { openJobs } from '../../jobs/kinds.ts';
import type { System } from '../../src/context.ts';
import type { TaskClaim, TaskKindName } from '../../src/domain/task.ts';
import type { Database } from '../../src/postgres/database.ts';
import { reconcileTasks } from '../../src/tasks/reconcile.ts';
import {
  kindOf,
  runTask,
  type StopSignals,
  Turns,
  takeNextTask,
  withoutStop,
} from '../../src/tasks/run-task.ts';
import type { TaskContext, TaskKind } from '../../src/tasks/task-kind.ts';

/** Takes the task of the kind that is next, as a worker that then does nothing; null if none is due. */
export function takeTask<C extends TaskContext>(context: C, kind: TaskKind<C>): Promise<TaskClaim | null> {
  return takeNextTask(context, [kind], new Turns());
}

/** Does what is due of these kinds, one task after another; how many. */
export async function runDueTasks<C extends TaskContext>(
  context: C,
  kinds: readonly TaskKind<C>[],
  signals: StopSignals = withoutStop,
): Promise<number> {
  const turns = new Turns();
  for (let done = 0; ; done++) {
    // What a stop gives back is due again at once.
    if (signals.stopping.aborted || signals.deadline.aborted) return done;
    const claim = await takeNextTask(context, kinds, turns);
    if (claim === null) return done;
    await runTask(context, kindOf(kinds, claim.kind), claim, signals);
  }
}

/** As if the pauses of all tasks of the kind were over. */
export async function makeTasksDue(db: Database, kind: TaskKindName): Promise<void> {
  await sql`update tasks set not_before = now() where kind = ${kind} and lease_until is null`.execute(db);
}

/** As if the workers had been silent for longer than their leases. */
export async function expireTaskLeases(db: Database, kind: TaskKindName): Promise<void> {
  await sql`
    update tasks set lease_until = now() - interval '1 second'
    where kind = ${kind} and lease_until is not null`.execute(db);
}

/** Reconciles the tasks of every kind, as a worker does. */
export function reconcileJobs(system: System): Promise<void> {
  return reconcileTasks(system, openJobs(system).kinds);
}
