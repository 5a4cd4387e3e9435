import { isDeepStrictEqual } from 'node:util';
import { Default } from 'typebox/value';
import {
  type ScheduleContext,
  type ScheduleSettings,
  scheduleSettings,
} from '../../../../src/capabilities/schedules/context.ts';
import { endWaitingRuns } from '../../../../src/capabilities/schedules/end-run.ts';
import { readSchedules } from '../../../../src/capabilities/schedules/keep.ts';
import { type RunItem, readRunItems } from '../../../../src/capabilities/schedules/run-item-store.ts';
import { queueRuns, readRuns, type ScheduleRun } from '../../../../src/capabilities/schedules/run-store.ts';
import { listSchedules, saveSchedule } from '../../../../src/capabilities/schedules/schedule-store.ts';
import { oneSchedule, type ScheduleDefinition } from '../../../../src/capabilities/schedules/schema.ts';
import { askForRun, makeDueRuns } from '../../../../src/capabilities/schedules/start.ts';
import { runJob } from '../../../../src/capabilities/schedules/work.ts';
import { OptionTable } from '../../../../src/domain/option-table.ts';
import type { TaskClaim } from '../../../../src/domain/task.ts';
import { ExportOptions } from '../../../../src/export/options.ts';
import { capabilities } from '../../../../src/registry.ts';
import { runTask, withoutStop } from '../../../../src/tasks/run-task.ts';
import type { TestSystem } from '../../../support/servers/system.ts';
import { takeTask } from '../../../support/servers/tasks.ts';
import { waitFor } from '../../../support/wait-for.ts';

type ScheduleContextOptions = Partial<ScheduleSettings>;

export function scheduleContext(t: TestSystem, settings: ScheduleContextOptions = {}): ScheduleContext {
  return { ...t.system, schedules: { ...scheduleSettings(t.config, {}), ...settings } };
}

let names = 0;
const jobOptions = {
  optionTable: new OptionTable(capabilities.flatMap(({ loads }) => loads ?? [])),
  exportOptions: new ExportOptions(capabilities.flatMap(({ exports }) => exports ?? [])),
};

/** Returns a schedule without checking it. The schedule is stored when it is first used. */
export function readSchedule(fields: Readonly<Record<string, unknown>>): ScheduleDefinition {
  const members = { name: `s${++names}`, cron: '0 * * * *', timezone: 'UTC', ...fields };
  return Default(oneSchedule(jobOptions), structuredClone(members)) as ScheduleDefinition;
}

/** Stores a schedule as if it were saved now, unless it is already stored. */
async function store(
  { db }: ScheduleContext,
  environmentId: number,
  definition: ScheduleDefinition,
  now: Date,
): Promise<void> {
  const [current] = await listSchedules(db, environmentId, definition.name);
  const members: unknown = JSON.parse(JSON.stringify(definition));
  if (isDeepStrictEqual(current?.definition, members)) return;
  await saveSchedule(db, environmentId, definition, current?.until ?? now);
}

export async function requestRun(
  context: ScheduleContext,
  environmentId: number,
  schedule: ScheduleDefinition,
  dueAt: Date,
) {
  await store(context, environmentId, schedule, new Date());
  return askForRun(context, environmentId, schedule.name, dueAt);
}

/** Processes one of the next runs. Returns false if there is none. */
export async function doNext(
  context: ScheduleContext,
  stopping = new AbortController().signal,
): Promise<boolean> {
  const claim = await takeRun(context);
  if (claim === null) return false;
  await runTask(context, runJob, claim, { ...withoutStop, stopping });
  return true;
}

/** Claims the next run but does not process it. Returns `null` if there is none. */
export async function takeRun(context: ScheduleContext): Promise<TaskClaim | null> {
  await queueRuns(context.db);
  return takeTask(context, runJob);
}

export async function runsOf(context: ScheduleContext, { name }: ScheduleDefinition): Promise<ScheduleRun[]> {
  return (await readRuns(context.db, { name }, 1_000)).reverse();
}

/** Describes each run by its due time (without seconds), its status and its cause. */
export async function historyOf(context: ScheduleContext, schedule: ScheduleDefinition): Promise<string[]> {
  const runs = await runsOf(context, schedule);
  return runs.map(({ dueAt, status, cause }) => `${dueAt.toISOString().slice(0, 16)} ${status} ${cause}`);
}

type EndedRun = ScheduleRun & { readonly items: readonly RunItem[] };

/** Processes all due runs while workers run their jobs. Returns the last run. */
export async function finish(context: ScheduleContext, schedule: ScheduleDefinition): Promise<EndedRun> {
  return waitFor(`the runs of ${schedule.name} to end`, async () => {
    await doNext(context);
    await endWaitingRuns(context);
    const runs = await runsOf(context, schedule);
    const lastRun = runs.at(-1);
    if (lastRun === undefined || runs.some(({ endedAt }) => endedAt === null)) return null;
    return { ...lastRun, items: await readRunItems(context.db, lastRun.runId) };
  });
}

let requestedAt = Date.parse('2026-01-01T00:00:00Z');

/** Requests a run and processes it. Each requested run is due one minute after the previous one. */
export async function runNow(
  context: ScheduleContext,
  environmentId: number,
  schedule: ScheduleDefinition,
): Promise<EndedRun> {
  requestedAt += 60_000;
  await requestRun(context, environmentId, schedule, new Date(requestedAt));
  return finish(context, schedule);
}

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
