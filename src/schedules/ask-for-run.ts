import type { Database } from '../postgres/database.ts';
import { insertRun, requeueRun } from '../postgres/stores/schedule-runs.ts';
import { addSchedule, lockSchedule } from '../postgres/stores/schedules.ts';
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
    const asTheFileSays = { definition: definitionOf(schedule), notify: schedule.notify };
    const run = { dueAt, cause: 'asked', missed: 0, skip: null, ...asTheFileSays } as const;
    if ((await insertRun(transaction, environmentId, schedule.name, run)) !== null) return 'asked';
    return (await requeueRun(transaction, environmentId, schedule.name, dueAt, asTheFileSays))
      ? 'again'
      : 'known';
  });
}
