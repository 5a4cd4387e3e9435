import type { Database } from '../postgres/database.ts';
import { findEnvironment } from '../postgres/stores/environments.ts';
import { readRuns } from '../postgres/stores/schedule-runs.ts';
import { readPauses } from '../postgres/stores/schedules.ts';
import { nextDueTime } from '../sources/schedules/due-times.ts';
import type { Schedule } from '../sources/schedules/schedule.ts';
import { readSchedulesFile } from '../sources/schedules/schedules-file.ts';
import { defineCommand } from './define-command.ts';
import { UsageError } from './errors.ts';
import { columnsOf, formatTime, printable, printTable } from './format.ts';
import { readOperatorFile } from './operator-file.ts';
import { optional, text } from './options.ts';
import { history, pause, readFileInForce, resume, run } from './schedule-runs.ts';
import { withSession } from './session.ts';
import { readSettings } from './settings.ts';

const check = defineCommand({
  name: 'check',
  summary: 'check a file',
  description:
    'Reports everything that is wrong with a schedules file, with lines. Needs no database; does not check that\n' +
    'environments and variables exist.',
  argument: optional('[file]', 'YAML or JSON; - for standard input; default: SCHEDULES_FILE'),
  json: true,
  details: 'Exit code: 0 the file is right; 2 it is wrong.',
  examples: [
    'sluice schedules check sluice.schedules.yaml',
    'sluice schedules check - --json < sluice.schedules.yaml',
  ],
  run: async ({ cli, command, argument, terminal, json }) => {
    const file = argument ?? readSettings(cli, command).config.schedulesFile;
    if (file === null) throw new UsageError('Name a file, or set SCHEDULES_FILE.');
    const consequence = 'it would be refused';
    const schedules = await readOperatorFile(file, readSchedulesFile, { terminal, json }, consequence);
    if (schedules === null) return;
    const rows = schedules.map((schedule) => {
      const { name, environment, work } = schedule;
      return { name, environment, kind: work.kind, next: nextDue(schedule) };
    });
    if (json) {
      const shown = rows.map(({ next, ...row }) => ({ ...row, next_due: next?.toISOString() ?? null }));
      return terminal.json({ problems: [], problem_count: 0, schedules: shown });
    }
    const cells = rows.map(({ name, environment, kind, next }) => [
      name,
      environment,
      kind,
      formatTime(next),
    ]);
    printTable(terminal, columnsOf('schedule', 'environment', 'what', 'next due'), cells);
  },
});

function nextDue({ enabled, cron, timeZone }: Schedule, isPaused = false): Date | null {
  const next = enabled && !isPaused ? nextDueTime(cron, timeZone, Date.now()) : null;
  return next === null ? null : new Date(next);
}

const list = defineCommand({
  name: 'list',
  summary: 'the schedules, when they are due next, how they went last',
  description: 'Lists the schedules of the file, when each is due next, and how its last run went.',
  options: { file: text('--file <file>', 'another file than SCHEDULES_FILE') },
  json: true,
  details: 'Exit code: 0; 2 there is no file, or it is wrong.',
  examples: [
    'SCHEDULES_FILE=sluice.schedules.yaml sluice schedules list',
    "sluice schedules list --file schedules.yaml --json | jq '.[].next_due'",
  ],
  run: async (invocation) => {
    const { cli, command, flags, terminal, json } = invocation;
    const schedules = await readFileInForce(readSettings(cli, command).config, flags.file);
    await withSession(invocation, async ({ system }) => {
      const found = await Promise.all(schedules.map((schedule) => lookUp(system.db, schedule)));
      if (json) return terminal.json(found.map(render));
      const titles = ['schedule', 'environment', 'what', 'cron', 'next due', 'last due', 'last status'];
      printTable(terminal, columnsOf(...titles), found.map(cells));
    });
  },
});

/** A schedule of the file with what the ledger knows of it. */
async function lookUp(db: Database, schedule: Schedule) {
  const environment = await findEnvironment(db, schedule.environment);
  const filter = environment && { environmentId: environment.environmentId, name: schedule.name };
  const [last] = filter === null ? [] : await readRuns(db, filter, 1);
  const pauses = filter === null ? null : await readPauses(db, filter.environmentId);
  const pausedAt = pauses?.get(schedule.name) ?? null;
  return {
    schedule,
    exists: environment !== null,
    last,
    pausedAt,
    next: nextDue(schedule, pausedAt !== null),
  };
}
type Found = Awaited<ReturnType<typeof lookUp>>;

function render({ schedule, exists, last, next, pausedAt }: Found) {
  return {
    schedule: schedule.name,
    environment: schedule.environment,
    environment_exists: exists,
    kind: schedule.work.kind,
    cron: schedule.cron,
    time_zone: schedule.timeZone,
    enabled: schedule.enabled,
    paused_at: pausedAt?.toISOString() ?? null,
    next_due: next?.toISOString() ?? null,
    last_due: last?.dueAt.toISOString() ?? null,
    last_status: last?.status ?? null,
  };
}

function cells({ schedule, exists, last, next, pausedAt }: Found): string[] {
  const due = pausedAt === null ? formatTime(next) : 'paused';
  return [
    schedule.name,
    exists ? schedule.environment : `${schedule.environment} (there is none)`,
    schedule.work.kind,
    printable(`${schedule.cron} ${schedule.timeZone}`, 40),
    schedule.enabled ? due : 'disabled',
    formatTime(last?.dueAt ?? null),
    last?.status ?? '–',
  ];
}

export const schedules = defineCommand({
  name: 'schedules',
  summary: 'loads and exports that run by the clock',
  description:
    'Loads and exports that run by the clock. They are written in the file that SCHEDULES_FILE names, and done by the\n' +
    'workers of `sluice start` and `sluice work`.',
  examples: ['sluice schedules check sluice.schedules.yaml', 'sluice schedules history nightly-users'],
  commands: [check, list, run, pause, resume, history],
});
