import pLimit from 'p-limit';
import type { Database } from '../../postgres/database.ts';
import { NEXT_DUE_TIMES, SHOWN_RUNS } from './api.ts';
import { nextDueTimes } from './due-times.ts';
import { renderShortRun } from './render-run.ts';
import { readRuns, type ScheduleRun } from './run-store.ts';
import type { LoadDefinition, Schedule, ScheduleDefinition } from './schema.ts';

const runsAtATime = 4;

export async function renderSchedules(db: Database, schedules: readonly Schedule[], now: Date) {
  const atATime = pLimit(runsAtATime);
  return Promise.all(
    schedules.map((schedule) =>
      atATime(async () => {
        const { environmentId, definition } = schedule;
        const runs = await readRuns(db, { environmentId, name: definition.name }, SHOWN_RUNS);
        return renderSchedule(schedule, runs, now);
      }),
    ),
  );
}

function renderSchedule({ definition, pausedAt }: Schedule, runs: readonly ScheduleRun[], now: Date) {
  const { name, cron, timezone, enabled, load } = definition;
  const isDue = enabled && pausedAt === null;
  const due = isDue ? nextDueTimes(cron, timezone, now.getTime(), NEXT_DUE_TIMES) : [];
  const text = (ms: number): string => new Date(ms).toISOString();
  return {
    schedule: name,
    kind: kindOf(definition),
    definition,
    what: load === undefined ? describeExport(definition.export) : describeSource(load),
    cron,
    time_zone: timezone,
    enabled,
    paused_at: pausedAt?.toISOString() ?? null,
    missed: definition.missed,
    overlap: definition.overlap,
    next_due: due[0] === undefined ? null : text(due[0]),
    next_times: due.map(text),
    runs: runs.map(renderShortRun),
  };
}

function kindOf({ load }: Pick<ScheduleDefinition, 'load'>): 'load' | 'export' {
  return load === undefined ? 'export' : 'load';
}

/** Describes a source without its headers, keys and parameters, which may be secret. */
function describeSource(load: LoadDefinition): string {
  const { files, http, s3, command } = load;
  if (files !== undefined) return `files ${files.pattern}`;
  if (http !== undefined) return `http ${http.url.replace(/[?#].*$/s, '')}`;
  return s3?.url ?? `command ${command?.name}`;
}

function describeExport({ range, to_dir }: ScheduleDefinition['export'] = {}): string {
  const what = range === undefined ? 'export' : `export of ${range.replaceAll('_', ' ')}`;
  return to_dir === undefined ? what : `${what} to ${to_dir}`;
}
