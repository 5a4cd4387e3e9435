import { isDeepStrictEqual } from 'node:util';
import { Default } from 'typebox/value';
import {
  type ScheduleContext,
  type ScheduleSettings,
  scheduleSettings,
} from '../../../../src/capabilities/schedules/context.ts';
import { endWaitingRuns } from '../../../../src/capabilities/schedules/end-run.ts';
import { readSchedules } from '../../../../src/capabilities/schedules/keep.ts';
import {
  queueRuns,
  type RunItem,
  readRunItems,
  readRuns,
  type ScheduleRun,
} from '../../../../src/capabilities/schedules/run-store.ts';
import { listSchedules, saveSchedule } from '../../../../src/capabilities/schedules/schedule-store.ts';
import { oneSchedule, type ScheduleDefinition } from '../../../../src/capabilities/schedules/schema.ts';
import { askForRun, makeDueRuns } from '../../../../src/capabilities/schedules/start.ts';
import { runJob } from '../../../../src/capabilities/schedules/work.ts';
import { OptionTable } from '../../../../src/domain/option-table.ts';
import type { TaskClaim } from '../../../../src/domain/task.ts';
import { capabilities } from '../../../../src/registry.ts';
import { runTask, withoutStop } from '../../../../src/tasks/run-task.ts';
import type { TestSystem } from '../../../support/system.ts';
import { takeTask } from '../../../support/tasks.ts';
import { waitFor } from '../../../support/wait-for.ts';

type ScheduleContextOptions = Partial<ScheduleSettings>;

/** What a worker process would see to its schedules with. */
export function scheduleContext(t: TestSystem, own: ScheduleContextOptions = {}): ScheduleContext {
  return { ...t.system, schedules: { ...scheduleSettings(t.config, {}), ...own } };
}

let names = 0;
const optionTable = new OptionTable(capabilities.flatMap(({ loads }) => loads ?? []));

/** A schedule with its defaults, which is stored when it is first used. Nothing checks it. */
export function readSchedule(given: Readonly<Record<string, unknown>>): ScheduleDefinition {
  const members = { name: `s${++names}`, cron: '0 * * * *', timezone: 'UTC', ...given };
  return Default(oneSchedule(optionTable), structuredClone(members)) as ScheduleDefinition;
}

/** Stores a schedule, if another is stored, as of this moment. */
async function store(
  { db }: ScheduleContext,
  environmentId: number,
  definition: ScheduleDefinition,
  now: Date,
): Promise<void> {
  const [known] = await listSchedules(db, environmentId, definition.name);
  const members: unknown = JSON.parse(JSON.stringify(definition));
  if (isDeepStrictEqual(known?.definition, members)) return;
  await saveSchedule(db, environmentId, definition, known?.until ?? now);
}

/** Asks for a run of a schedule as a person does. */
export async function askFor(
  context: ScheduleContext,
  environmentId: number,
  schedule: ScheduleDefinition,
  dueAt: Date,
) {
  await store(context, environmentId, schedule, new Date());
  return askForRun(context.db, environmentId, schedule.name, dueAt);
}

/** Makes the tasks of the runs that are next, and does one of them; false if none is to be done. */
export async function doNext(
  context: ScheduleContext,
  stopping = new AbortController().signal,
): Promise<boolean> {
  const claim = await takeRun(context);
  if (claim === null) return false;
  await runTask(context, runJob, claim, { ...withoutStop, stopping });
  return true;
}

/** As a worker would that then does nothing; null if none is to be done. */
export async function takeRun(context: ScheduleContext): Promise<TaskClaim | null> {
  await queueRuns(context.db);
  return takeTask(context, runJob);
}

/** The runs of a schedule, the earliest due first. */
export async function runsOf(context: ScheduleContext, { name }: ScheduleDefinition): Promise<ScheduleRun[]> {
  return (await readRuns(context.db, { name }, 1_000)).reverse();
}

/** `due status` of each, the due time without its seconds. */
export async function historyOf(context: ScheduleContext, schedule: ScheduleDefinition): Promise<string[]> {
  const runs = await runsOf(context, schedule);
  return runs.map(({ dueAt, status, cause }) => `${dueAt.toISOString().slice(0, 16)} ${status} ${cause}`);
}

type EndedRun = ScheduleRun & { readonly items: readonly RunItem[] };

/** Does what is due of a schedule to its end, workers seeing to the jobs; gives the last run. */
export async function finish(context: ScheduleContext, schedule: ScheduleDefinition): Promise<EndedRun> {
  return waitFor(`the runs of ${schedule.name} to end`, async () => {
    await doNext(context);
    await endWaitingRuns(context);
    const runs = await runsOf(context, schedule);
    const last = runs.at(-1);
    if (last === undefined || runs.some(({ endedAt }) => endedAt === null)) return null;
    return { ...last, items: await readRunItems(context.db, last.runId) };
  });
}

let asked = Date.parse('2026-01-01T00:00:00Z');

/** Runs a schedule at once, as a person may ask for it, each time a minute later. */
export async function runNow(
  context: ScheduleContext,
  environmentId: number,
  schedule: ScheduleDefinition,
): Promise<EndedRun> {
  asked += 60_000;
  await askFor(context, environmentId, schedule, new Date(asked));
  return finish(context, schedule);
}

/** Lets the clock stand at an instant and sees what is due of schedules of the first environment. */
export async function tick(
  context: ScheduleContext,
  schedules: readonly ScheduleDefinition[],
  at: string,
  environmentId = 1,
): Promise<number> {
  const now = () => new Date(`${at}Z`);
  for (const schedule of schedules) await store(context, environmentId, schedule, now());
  return makeDueRuns(
    { ...context, schedules: { ...context.schedules, now } },
    await readSchedules(context.db, environmentId),
  );
}
