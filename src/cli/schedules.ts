/** `sluice schedules`: loads and exports that run by the clock. */
import { readInstant } from '../domain/instant.ts';
import type { Database } from '../postgres/database.ts';
import { findEnvironment } from '../postgres/stores/environments.ts';
import { readRunItems, readRuns, type ScheduleRun } from '../postgres/stores/schedule-runs.ts';
import { readMade } from '../postgres/stores/schedules.ts';
import { countLiveWorkers } from '../postgres/stores/workers.ts';
import { nextDueTimes } from '../sources/schedules/due-times.ts';
import { renderRun } from '../sources/schedules/end-run.ts';
import { kindOf, renderSchedules } from '../sources/schedules/inspect-schedules.ts';
import {
  checkConfined,
  keepSchedule,
  removeSchedule,
  withMade,
} from '../sources/schedules/made-schedules.ts';
import { readSchedulesFile } from '../sources/schedules/schedules-file.ts';
import type { Schedule } from '../sources/schedules/schedules-schema.ts';
import { askForRun, pauseSchedule } from '../sources/schedules/start-schedules.ts';
import {
  defineCommand,
  type Flags,
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
import { requireEnvironment, type Session } from './session.ts';
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

const fileOption = {
  file: text('--file <file>', 'another file than SCHEDULES_FILE'),
  env: text('--env <name>', 'only of this environment'),
};

type InSession<A = unknown> = Session & Invocation<Flags<typeof fileOption>, A>;

/** Reads the schedules of SCHEDULES_FILE, or of --file, and those of the API. @throws UsageError */
async function readSchedules({ system, flags }: InSession): Promise<readonly Schedule[]> {
  const file = flags.file ?? system.config.schedulesFile;
  const ofFile = file === null ? [] : await readValidFile(file, readSchedulesFile, 'nothing was done');
  const found = withMade(ofFile, await readMade(system.db, null));
  return found.filter(({ environment }) => environment === (flags.env ?? environment));
}

/** Returns the schedule that is named, with its environment. @throws UsageError */
async function requireSchedule(call: InSession<string>): Promise<[Schedule, environmentId: number]> {
  const schedule = (await readSchedules(call)).find(({ name }) => name === call.argument);
  if (schedule === undefined) {
    throw new UsageError(
      `There is no schedule ${call.argument}; \`sluice schedules list\` shows those there are.`,
    );
  }
  const { environmentId } = await requireEnvironment(call, schedule.environment);
  return [schedule, environmentId];
}

const list = defineCommand({
  name: 'list',
  summary: 'the schedules, when they are due next, how they went last',
  description:
    'Lists the schedules of the file and of the API, when each is due next, and how its last run went.',
  options: fileOption,
  json: true,
  details: 'Exit code: 0; 2 the file is wrong.',
  examples: [
    'SCHEDULES_FILE=sluice.schedules.yaml sluice schedules list',
    "sluice schedules list --file schedules.yaml --json | jq '.[].next_due'",
  ],
  inSession: async (call) => {
    const found = await readSchedules(call);
    printList(call, await Promise.all(found.map((schedule) => lookUp(call.system.db, schedule))), {
      columns: [
        ...(['schedule', 'environment', 'made_by', 'kind', 'cron', 'time_zone'] as const),
        ...(['enabled', 'paused_at', 'next_due', 'last_due', 'last_status'] as const),
      ],
      none: 'There are no schedules.',
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
  inSession: async (call) => {
    const { argument: name, flags, terminal, system } = call;
    const { db } = system;
    const { signal } = listenForStop();
    const dueAt = readDue(flags.due);
    const [schedule, environmentId] = await requireSchedule(call);
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
    inSession: async (call) => {
      const [schedule, environmentId] = await requireSchedule(call);
      const paused = name === 'pause';
      await pauseSchedule(call.system.db, environmentId, schedule.name, paused, new Date());
      printDone(call, { schedule: schedule.name, paused }, `${schedule.name} ${done}`);
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

const create = defineCommand({
  name: 'create',
  summary: 'create the schedules of a file',
  description:
    'Keeps the schedules of a file in the database, as POST /v1/schedules does: workers see to them beside those of\n' +
    'SCHEDULES_FILE, which wins. Secrets are variables that SCHEDULES_VARIABLES grants.',
  argument: required('<file>', 'YAML or JSON, in the form of the schedules file; - for standard input'),
  options: { replace: flag('--replace', 'change schedules of these names that are there') },
  json: true,
  details: `Exit code: 0; 1 the schedules file has one of the names; 2 a schedule is wrong,
or there is one of its name. Those before it are created.`,
  examples: [
    'sluice schedules create nightly.yaml',
    'sluice schedules create - --replace --json < nightly.yaml',
  ],
  inSession: async (call) => {
    const { system, argument, flags } = call;
    const schedules = await readValidFile(argument, readSchedulesFile, 'nothing was created');
    for (const schedule of schedules) checkConfined(schedule, system.config);
    for (const schedule of schedules) {
      const environment = await requireEnvironment(call, schedule.environment);
      await keepSchedule(system, environment, schedule, flags.replace ? 'either' : 'new');
    }
    const created = schedules.map(({ name, environment }) => ({ schedule: name, environment }));
    printDone(call, created, `Created: ${created.map(({ schedule }) => schedule).join(', ')}`);
  },
});

const remove = defineCommand({
  name: 'delete',
  summary: 'delete a schedule of the API',
  description:
    'Deletes a schedule that `create`, the API or the console made, with its history. Its jobs stay.',
  argument: required('<name>', 'of the schedule'),
  json: true,
  details: 'Exit code: 0; 1 it is not there, or one of the schedules file.',
  examples: ['sluice schedules delete partner-accounts'],
  inEnvironment: async (call) => {
    const { system, environmentId, env, argument: name } = call;
    await removeSchedule(system, { environmentId, name: env }, name);
    printDone(call, { schedule: name, deleted: true }, `${name} is deleted.`);
  },
});

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
          throw new CommandFailed('It is queued, but no worker runs. Start one: `sluice start`.');
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
    'Runs loads and exports by the clock. They are written in the file that SCHEDULES_FILE names, or created by `create`, the\n' +
    'API or the console, and done by the workers of `sluice start` and `sluice work`.',
  examples: ['sluice schedules check sluice.schedules.yaml', 'sluice schedules history nightly-users'],
  commands: [check, list, create, remove, run, pause, resume, history],
});
