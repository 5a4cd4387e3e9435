/** `sluice schedules`: loads and exports that run by the clock. */
import { readInstant } from '../domain/instant.ts';
import type { Database } from '../postgres/database.ts';
import { findEnvironment } from '../postgres/stores/environments.ts';
import { readRunItems, readRuns, type ScheduleRun } from '../postgres/stores/schedule-runs.ts';
import { countLiveWorkers } from '../postgres/stores/workers.ts';
import { nextDueTimes } from '../sources/schedules/due-times.ts';
import { renderRun } from '../sources/schedules/end-run.ts';
import { kindOf, renderSchedules } from '../sources/schedules/inspect-schedules.ts';
import { readSchedulesFile } from '../sources/schedules/schedules-file.ts';
import type { Schedule } from '../sources/schedules/schedules-schema.ts';
import { askForRun, pauseSchedule } from '../sources/schedules/start-schedules.ts';
import {
  defineCommand,
  flag,
  type Invocation,
  limitOption,
  optional,
  required,
  text,
} from './define-command.ts';
import { CommandFailed, exitCodes, UsageError } from './errors.ts';
import { follow } from './follow.ts';
import { readOperatorFile, readValidFile } from './input-files.ts';
import { listenForStop } from './service/processes.ts';
import { requireEnvironment, withSession } from './session.ts';
import { readSettings } from './settings.ts';
import { formatTime, printDone, printList, printRecord, printRecords, type Terminal } from './terminal.ts';

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
    const shown = schedules.map((schedule) => {
      const { name, environment, enabled, cron, timezone } = schedule;
      const [next] = enabled ? nextDueTimes(cron, timezone, Date.now(), 1) : [];
      const next_due = next === undefined ? null : new Date(next).toISOString();
      return { name, environment, kind: kindOf(schedule), next_due };
    });
    if (json) terminal.json({ problems: [], problem_count: 0, schedules: shown });
    else printRecords(terminal, shown);
  },
});

const fileOption = { file: text('--file <file>', 'another file than SCHEDULES_FILE') };

/** Reads the schedules of SCHEDULES_FILE, or of --file. @throws UsageError */
async function readSchedules({
  cli,
  command,
  flags,
}: Invocation<{ readonly file: string | undefined }>): Promise<readonly Schedule[]> {
  const file = flags.file ?? readSettings(cli, command).config.schedulesFile;
  if (file === null)
    throw new UsageError('There is no schedules file: set SCHEDULES_FILE, or name one with --file.');
  return readValidFile(file, readSchedulesFile, 'nothing was done');
}

async function requireSchedule(
  call: Invocation<{ readonly file: string | undefined }, string>,
): Promise<Schedule> {
  const found = (await readSchedules(call)).find(({ name }) => name === call.argument);
  if (found !== undefined) return found;
  throw new UsageError(
    `The file has no schedule ${call.argument}; \`sluice schedules list\` shows those it has.`,
  );
}

const list = defineCommand({
  name: 'list',
  summary: 'the schedules, when they are due next, how they went last',
  description:
    'Lists the schedules of the file, when each is due next, and how its last run went; of a pull, how many of its days are loaded.',
  options: fileOption,
  json: true,
  details: 'Exit code: 0; 2 there is no file, or it is wrong.',
  examples: [
    'SCHEDULES_FILE=sluice.schedules.yaml sluice schedules list',
    "sluice schedules list --file schedules.yaml --json | jq '.[].next_due'",
  ],
  run: async (call) => {
    const schedules = await readSchedules(call);
    await withSession(call, async ({ system }) => {
      printList(call, await Promise.all(schedules.map((schedule) => lookUp(system.db, schedule))), {
        columns: [
          'schedule',
          'environment',
          'kind',
          'days_loaded',
          'days_over',
          'cron',
          'time_zone',
          'enabled',
          'paused_at',
          'next_due',
          'last_due',
          'last_status',
        ],
        none: 'The file has no schedules.',
      });
    });
  },
});

async function lookUp(db: Database, schedule: Schedule) {
  const found = await findEnvironment(db, schedule.environment);
  const { environment } = schedule;
  // No environment has the id 0: nothing is known of a schedule whose environment is not there.
  const [shown] = await renderSchedules(db, found ?? { environmentId: 0 }, [schedule], new Date());
  const [last] = shown?.runs ?? [];
  const { due_at: last_due = null, status: last_status = null } = last ?? {};
  return { ...shown, environment, environment_exists: found !== null, last_due, last_status };
}

const pollMs = 500;
/** A worker that has just been started shows itself within seconds. */
const workerlessMs = 15_000;

interface Wanted {
  readonly environmentId: number;
  readonly name: string;
  readonly dueAt: Date;
}

const run = defineCommand({
  name: 'run',
  summary: 'run a schedule now',
  description:
    'Queues a run of a schedule, whatever the clock says, for the workers of `sluice start` or `sluice work`. With --due\n' +
    'it stands for that time; if the run of that time failed or was skipped, it is done again, and loads nothing twice.',
  argument: required('<name>', 'of the schedule'),
  options: {
    due: text('--due <instant>', 'the time that it stands for, such as 2026-11-20T03:00:00Z; default: now'),
    wait: flag('--wait', 'wait until it has ended'),
    ...fileOption,
  },
  json: true,
  details: `Exit code: 0 it is queued, or, with --wait, it went well; 1 it failed, is
held by a guard, or there was no worker for ${workerlessMs / 1_000} s; 2 there is no such
schedule, or the file is wrong; 130 stopped while waiting: the run goes on.`,
  examples: [
    'sluice schedules run nightly-users --wait',
    'sluice schedules run nightly-users --due 2026-11-20T02:00:00Z',
  ],
  run: async (call) => {
    const { argument: name, flags, terminal } = call;
    const { signal } = listenForStop();
    const dueAt = readDue(flags.due);
    const schedule = await requireSchedule(call);
    await withSession(call, async (session) => {
      const { db } = session.system;
      const { environmentId } = await requireEnvironment(session, schedule.environment);
      const outcome = await askForRun(db, environmentId, schedule, dueAt, new Date());
      if (outcome === 'known') terminal.inform('There is a run of that time already.');
      const wanted = { environmentId, name, dueAt };
      const found = flags.wait ? await followRun(db, wanted, terminal, signal) : await findRun(db, wanted);
      const items = await readRunItems(db, found.runId);
      printRecord(call, renderRun(found, items));
      if (!flags.wait && (await countLiveWorkers(db)) === 0) {
        terminal.inform('No worker runs; the run waits for one.');
      }
      if (found.status === 'failed' || found.status === 'held') process.exitCode = exitCodes.failed;
      else process.exitCode = flags.wait && found.endedAt === null ? exitCodes.interrupted : exitCodes.ok;
    });
  },
});

function pausing(name: 'pause' | 'resume', summary: string, description: string, done: string) {
  return defineCommand({
    name,
    summary,
    description,
    argument: required('<name>', 'of the schedule'),
    options: fileOption,
    json: true,
    details: 'Exit code: 0; 2 there is no such schedule, or the file is wrong.',
    examples: [`sluice schedules ${name} nightly-users`],
    run: async (call) => {
      const schedule = await requireSchedule(call);
      const paused = name === 'pause';
      await withSession(call, async (session) => {
        const { environmentId } = await requireEnvironment(session, schedule.environment);
        await pauseSchedule(session.system.db, environmentId, schedule.name, paused, new Date());
        printDone(call, { schedule: schedule.name, paused }, `${schedule.name} ${done}`);
      });
    },
  });
}

const pause = pausing(
  'pause',
  'pause a schedule',
  'Pauses the schedule in every process. Runs that are missed while it is paused are not made up.',
  'is paused.',
);

const resume = pausing(
  'resume',
  'resume a paused schedule',
  'Resumes a paused schedule: it is due again from now on.',
  'is resumed.',
);

/** Looks at the run until it has ended or the signal aborts; prints once why it is tried again. @throws CommandFailed without a worker */
async function followRun(
  db: Database,
  wanted: Wanted,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<ScheduleRun> {
  let reported: string | null = null;
  let workerSeenAt = performance.now();
  let isMissed = false;
  return follow(
    { signal },
    {
      everyMs: pollMs,
      look: async () => ({ ...(await findRun(db, wanted)), workers: await countLiveWorkers(db) }),
      show: ({ endedAt, workers, status, lastError }) => {
        if (endedAt !== null || signal.aborted) return;
        if (workers > 0) {
          workerSeenAt = performance.now();
        } else if (performance.now() - workerSeenAt > workerlessMs) {
          throw new CommandFailed(
            'It is queued, but no worker runs. Start one: `sluice start`, with SCHEDULES_FILE set.',
          );
        } else if (!isMissed) {
          isMissed = true;
          terminal.inform(`No worker runs; it waits ${workerlessMs / 1_000} s for one.`);
        }
        if (status === 'queued' && lastError !== null && lastError !== reported) {
          reported = lastError;
          terminal.inform(`It will be tried again: ${reported}`);
        }
      },
    },
  );
}

/** The database keeps microseconds and a Date does not: a time with more digits would not be found again. */
function readDue(text: string | undefined): Date {
  if (text === undefined) return new Date();
  const instant = readInstant(text);
  if (instant === null) throw new UsageError('--due: write an instant such as 2026-11-20T03:00:00Z.');
  if (instant.ms > Date.now()) throw new UsageError('--due: that time has not come yet.');
  return new Date(instant.ms);
}

async function findRun(db: Database, wanted: Wanted): Promise<ScheduleRun> {
  const [found] = await readRuns(db, wanted, 1);
  if (found === undefined) throw new CommandFailed(`The run of ${formatTime(wanted.dueAt)} is gone.`);
  return found;
}

const history = defineCommand({
  name: 'history',
  summary: 'the latest runs',
  description:
    'Lists runs of schedules, the latest due time first, also of schedules that are no longer in the file.',
  argument: optional('[name]', 'only of this schedule'),
  options: { env: text('--env <name>', 'only of this environment'), limit: limitOption(20) },
  json: 'print JSON, with the jobs of each run',
  examples: [
    'sluice schedules history',
    "sluice schedules history nightly --limit 1 --json | jq '.[0].items[].job_id'",
  ],
  inSession: async (call) => {
    const { argument: name, flags, system } = call;
    const { db } = system;
    const environment = flags.env === undefined ? null : await requireEnvironment(call, flags.env);
    const filter = {
      ...(environment !== null && { environmentId: environment.environmentId }),
      ...(name !== undefined && { name }),
    };
    const runs = await readRuns(db, filter, flags.limit);
    const found = await Promise.all(
      runs.map(async (run) => renderRun(run, await readRunItems(db, run.runId))),
    );
    printList(call, found, {
      columns: [
        'schedule',
        'environment',
        'due_at',
        'status',
        'cause',
        'missed',
        'ended_at',
        'message',
        'last_error',
      ],
      none: 'There are no such runs.',
    });
  },
});

export const schedules = defineCommand({
  name: 'schedules',
  summary: 'loads and exports that run by the clock',
  description:
    'Runs loads and exports by the clock. They are written in the file that SCHEDULES_FILE names, and done by the\n' +
    'workers of `sluice start` and `sluice work`. A load can pull the events of Mixpanel, Amplitude or PostHog, day by day.',
  examples: ['sluice schedules check sluice.schedules.yaml', 'sluice schedules history nightly-users'],
  commands: [check, list, run, pause, resume, history],
});
