import pLimit from 'p-limit';
import { MAX_SHOWN_DUE_TIMES, MAX_TOLD_ITEMS, SHOWN_DUE_DAYS, SHOWN_RUNS } from '../../domain/limits.ts';
import type { Database } from '../../postgres/database.ts';
import type { Environment } from '../../postgres/stores/environments.ts';
import { readRunItems, readRuns, type ScheduleRun } from '../../postgres/stores/schedule-runs.ts';
import { readConsidered, readMade, scheduleKey } from '../../postgres/stores/schedules.ts';
import { nextDueTimes } from './due-times.ts';
import { renderRun } from './end-run.ts';
import { noSchedule, withMade } from './made-schedules.ts';
import { readSchedulesNow } from './schedules-file.ts';
import type { LoadDefinition, Schedule } from './schedules-schema.ts';

/* Schedules as those see them who look: what is in force and due, and what became of the last runs. */

interface InForce {
  /** Those that the file has now, and those that the API keeps. */
  readonly schedules: readonly Schedule[];
  /** Lines that say what is wrong with the file; then workers go on with what it said before. */
  readonly problems: readonly string[];
}

type Caller = Pick<Environment, 'environmentId' | 'name'>;

/** Reads the schedules of an environment. `path`: SCHEDULES_FILE; null: there is none. */
export async function readInForce(db: Database, path: string | null, caller: Caller): Promise<InForce> {
  const made = await readMade(db, caller.environmentId);
  const { schedules, problems } = await readSchedulesNow(path);
  const ofFile = schedules?.filter(({ environment }) => environment === caller.name) ?? [];
  return { schedules: withMade(ofFile, made), problems };
}

/** @throws InputError `not_found`. */
export async function requireSchedule(
  db: Database,
  path: string | null,
  caller: Caller,
  name: string,
): Promise<Schedule> {
  const { schedules } = await readInForce(db, path, caller);
  const found = schedules.find((each) => each.name === name);
  if (found === undefined) throw noSchedule(name);
  return found;
}

const runsAtATime = 4;

export async function renderSchedules(
  db: Database,
  { environmentId }: Pick<Environment, 'environmentId'>,
  schedules: readonly Schedule[],
  now: Date,
) {
  const considered = await readConsidered(db);
  const atATime = pLimit(runsAtATime);
  return Promise.all(
    schedules.map((schedule) =>
      atATime(async () => {
        const runs = await readRuns(db, { environmentId, name: schedule.name }, SHOWN_RUNS);
        const pausedAt = considered.get(scheduleKey(environmentId, schedule.name))?.pausedAt ?? null;
        return renderSchedule(schedule, { pausedAt, runs, now });
      }),
    ),
  );
}

const dayMs = 24 * 60 * 60 * 1_000;

interface Known {
  readonly pausedAt: Date | null;
  readonly runs: readonly ScheduleRun[];
  readonly now: Date;
}

function renderSchedule(schedule: Schedule, { pausedAt, runs, now }: Known) {
  const { environment: _, isMade = false, ...definition } = schedule;
  const { name, cron, timezone, enabled, load } = definition;
  const until = now.getTime() + SHOWN_DUE_DAYS * dayMs;
  const isDue = enabled && pausedAt === null;
  // The next time may be later than the days shown.
  const due = isDue ? nextDueTimes(cron, timezone, now.getTime(), MAX_SHOWN_DUE_TIMES, until) : [];
  const shown = due.filter((each) => each <= until);
  const text = (ms: number): string => new Date(ms).toISOString();
  return {
    schedule: name,
    kind: kindOf(schedule),
    made_by: isMade ? ('api' as const) : ('file' as const),
    definition: isMade ? definition : null,
    what: load === undefined ? describeExport(schedule.export) : describeSource(load),
    cron,
    time_zone: timezone,
    enabled,
    paused_at: pausedAt?.toISOString() ?? null,
    missed: schedule.missed,
    overlap: schedule.overlap,
    next_due: due[0] === undefined ? null : text(due[0]),
    due_times: shown.map(text),
    due_times_are_all: shown.length < MAX_SHOWN_DUE_TIMES,
    runs: runs.map(renderShortRun),
  };
}

export function kindOf({ load }: Schedule): 'load' | 'export' {
  return load === undefined ? 'export' : 'load';
}

/** Without secrets: headers, keys and parameters may hold some. */
function describeSource(load: LoadDefinition): string {
  const { files, http, s3, command } = load;
  if (files !== undefined) return `files ${files.pattern}`;
  if (http !== undefined) return `http ${http.url.replace(/[?#].*$/s, '')}`;
  return s3?.url ?? `command ${command?.name}`;
}

function describeExport({ range, to_dir }: Schedule['export'] = {}): string {
  const what = range === undefined ? 'export' : `export of ${range.replaceAll('_', ' ')}`;
  return to_dir === undefined ? what : `${what} to ${to_dir}`;
}

function renderShortRun(run: ScheduleRun) {
  const { due_at, status, cause, missed, started_at, ended_at, error_code, message, last_error } = renderRun(
    run,
    [],
  );
  return { due_at, status, cause, missed, started_at, ended_at, error_code, message, last_error };
}

/** With the jobs that it made, the first MAX_TOLD_ITEMS of them. */
export async function renderWholeRun(db: Database, run: ScheduleRun) {
  const items = await readRunItems(db, run.runId);
  return { ...renderRun(run, items.slice(0, MAX_TOLD_ITEMS)), item_count: items.length };
}
