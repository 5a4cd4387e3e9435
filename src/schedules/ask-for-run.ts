import type { Database } from '../postgres/database.ts';
import { addSchedule, insertRun, lockSchedule, requeueRun } from '../postgres/ledger/schedule-due.ts';
import { definitionOf } from './make-due-runs.ts';
import type { Schedule } from './schedule.ts';

/**
 * Makes a run that a person asks for, whatever the clock says. `asked`: it is made; `again`: the run of that time had
 * failed or was skipped and is to be done again; `known`: there is one, which is under way or went well.
 */
export async function askForRun(
  db: Database,
  environmentId: number,
  schedule: Schedule,
  dueAt: Date,
  now: Date,
): Promise<'asked' | 'again' | 'known'> {
  return db.transaction().execute(async (transaction) => {
    await addSchedule(transaction, environmentId, schedule.name, now);
    await lockSchedule(transaction, environmentId, schedule.name);
    const runId = await insertRun(transaction, environmentId, schedule.name, {
      dueAt,
      cause: 'asked',
      missed: 0,
      definition: definitionOf(schedule),
      notify: schedule.notify,
      skip: null,
    });
    if (runId !== null) return 'asked';
    return (await requeueRun(transaction, environmentId, schedule.name, dueAt, definitionOf(schedule)))
      ? 'again'
      : 'known';
  });
}
