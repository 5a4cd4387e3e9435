import { requireEnvironment } from '../../access/acts.ts';
import { readInstant } from '../../base/instant.ts';
import { defineCommand, flag, limitOption, optional, required, text } from '../../cli/define-command.ts';
import { CommandFailed, exitCodes, UsageError } from '../../cli/errors.ts';
import { follow } from '../../cli/follow.ts';
import { readOperatorFile } from '../../cli/input-files.ts';
import { listenForStop } from '../../cli/processes.ts';
import { withEnvironment } from '../../cli/session.ts';
import { readSettings } from '../../cli/settings.ts';
import { formatTime, printDone, printList, printRecord, type Terminal } from '../../cli/terminal.ts';
import type { Database } from '../../postgres/database.ts';
import { countLiveWorkers } from '../../tasks/worker-store.ts';
import { confinementOf } from './confinement.ts';
import { readSchedulesFile } from './file.ts';
import { applySchedules, pauseSchedule, readSchedules, removeSchedule } from './keep.ts';
import { renderScheduleRun, renderScheduleRuns, renderSchedules, renderShortRun } from './render-run.ts';
import { readRuns, type ScheduleRun } from './run-store.ts';
import { askForRun } from './start.ts';

const apply = defineCommand({
  name: 'apply',
  summary: 'apply a file of schedules',
  description:
    'Stores the schedules of a file, in one transaction: adds what is new and changes what differs. With --prune it also\n' +
    'deletes what the file lacks. Applying the same file again changes nothing. Secrets are variables of the workers that\n' +
    'SCHEDULES_VARIABLES grants.',
  argument: required('<file>', 'YAML or JSON; - for standard input'),
  options: {
    prune: flag('--prune', 'delete the schedules that the file lacks'),
    dryRun: flag('--dry-run', 'check the file and show what would change; write nothing'),
  },
  environment: true,
  json: true,
  details: `Exit code: 0 applied, or nothing to do; 1 failed; 2 the file is wrong: every
problem is named with its line.`,
  examples: [
    'sluice schedules apply sluice.schedules.yaml --dry-run',
    'sluice schedules apply sluice.schedules.yaml --prune --env staging',
  ],
  run: async (invocation) => {
    const { cli, command, argument: file, flags, env, terminal, json } = invocation;
    const confinement = await confinementOf(readSettings(cli, command).config, env);
    // Problems in the file are reported even without a database.
    const read = (bytes: Buffer) => readSchedulesFile(cli, bytes, confinement);
    const definitions = await readOperatorFile(file, read, invocation);
    if (definitions === null) return;
    await withEnvironment(invocation, async ({ system, environmentId }) => {
      const changes = await applySchedules(system, environmentId, definitions, flags);
      const { added, changed, removed } = changes;
      const isSame = added.length + changed.length + removed.length === 0;
      const written = !flags.dryRun && !isSame;
      if (json) return terminal.json({ environment: env, dry_run: flags.dryRun, written, ...changes });
      for (const name of added) terminal.print(`+ ${name}`);
      for (const { name, fields } of changed) terminal.print(`~ ${name}: ${fields.join(', ')}`);
      for (const name of removed) terminal.print(`- ${name}`);
      if (isSame) terminal.inform(`Nothing to do: environment ${env} has these schedules already.`);
      else if (flags.dryRun) terminal.inform('Dry run: nothing was written.');
      else terminal.inform(`Environment ${env} has these schedules now.`);
    });
  },
});

const list = defineCommand({
  name: 'list',
  summary: 'the schedules, when they are due next, how they went last',
  description: 'Lists the schedules, when each is due next, and how its last run went.',
  options: { env: text('--env <name>', 'only of this environment') },
  json: true,
  examples: ['sluice schedules list', "sluice schedules list --json | jq '.[].next_due'"],
  inSession: async (call) => {
    const { db } = call.system;
    const environment =
      call.flags.env === undefined ? null : await requireEnvironment(call.system, call.flags.env);
    const schedules = await readSchedules(db, environment?.environmentId ?? null);
    const shown = await renderSchedules(db, schedules, new Date());
    const rows = shown.map((item, at) => {
      const [{ due_at: last_due = null, status: last_status = null } = {}] = item.runs;
      return { ...item, environment: schedules[at]?.environment, last_due, last_status };
    });
    printList(call, rows, {
      columns: [
        ...(['schedule', 'environment', 'kind', 'cron', 'time_zone'] as const),
        ...(['enabled', 'paused_at', 'next_due', 'last_due', 'last_status'] as const),
      ],
      none: 'There are no schedules.',
    });
  },
});

const pollMs = 500;
/** If no worker runs for this long, the command fails. */
const workerlessMs = 15_000;

interface RunKey {
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
  },
  json: true,
  details: `Exit code: 0 it is queued, or, with --wait, it went well; 1 it failed, is
held by a guard, there was no worker for ${workerlessMs / 1_000} s, or there is no such
schedule; 130 stopped while waiting: the run goes on.`,
  examples: [
    'sluice schedules run nightly-users --wait',
    'sluice schedules run nightly-users --due 2026-11-20T02:00:00Z',
  ],
  inEnvironment: async (call) => {
    const { argument: name, flags, terminal, system, environmentId, baseUrl } = call;
    const { db } = system;
    const { signal } = listenForStop();
    const dueAt = readDue(flags.due);
    const outcome = await askForRun(system, environmentId, name, dueAt);
    if (outcome === 'known') terminal.inform('There is a run of that time already.');
    const key = { environmentId, name, dueAt };
    const latest = flags.wait ? await followRun(db, key, terminal, signal) : await findRun(db, key);
    printRecord(call, await renderScheduleRun(db, latest, baseUrl));
    if (!flags.wait && (await countLiveWorkers(db)) === 0) {
      terminal.inform('No worker runs; the run waits for one.');
    }
    if (latest.status === 'failed' || latest.status === 'held') process.exitCode = exitCodes.failed;
    else process.exitCode = flags.wait && latest.endedAt === null ? exitCodes.interrupted : exitCodes.ok;
  },
});

function pausing(name: 'pause' | 'resume', summary: string, description: string, done: string) {
  return defineCommand({
    name,
    summary,
    description,
    argument: required('<name>', 'of the schedule'),
    json: true,
    examples: [`sluice schedules ${name} nightly-users`],
    inEnvironment: async (call) => {
      const { system, environmentId, argument: schedule } = call;
      const paused = name === 'pause';
      await pauseSchedule(system, environmentId, schedule, paused);
      printDone(call, { schedule, paused }, `${schedule} ${done}`);
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

const remove = defineCommand({
  name: 'delete',
  summary: 'delete a schedule',
  description: 'Deletes a schedule with its history. Its jobs stay.',
  argument: required('<name>', 'of the schedule'),
  json: true,
  examples: ['sluice schedules delete partner-accounts'],
  inEnvironment: async (call) => {
    const { system, environmentId, argument: name } = call;
    await removeSchedule(system, environmentId, name);
    printDone(call, { schedule: name, deleted: true }, `${name} is deleted.`);
  },
});

/** @throws CommandFailed */
async function followRun(
  db: Database,
  key: RunKey,
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
      read: async () => ({ ...(await findRun(db, key)), workers: await countLiveWorkers(db) }),
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

/** Drops microseconds: if a run were stored with them, a Date could not find it again. */
function readDue(text: string | undefined): Date {
  if (text === undefined) return new Date();
  const instant = readInstant(text);
  if (instant === null) throw new UsageError('--due: write an instant such as 2026-11-20T03:00:00Z.');
  if (instant.ms > Date.now()) throw new UsageError('--due: that time has not come yet.');
  return new Date(instant.ms);
}

async function findRun(db: Database, key: RunKey): Promise<ScheduleRun> {
  const [row] = await readRuns(db, key, 1);
  if (row === undefined) throw new CommandFailed(`The run of ${formatTime(key.dueAt)} is gone.`);
  return row;
}

const history = defineCommand({
  name: 'history',
  summary: 'the latest runs',
  description:
    'Lists runs of schedules, the latest due time first, also of deleted schedules while one has not ended.',
  argument: optional('[name]', 'only of this schedule'),
  options: { env: text('--env <name>', 'only of this environment'), limit: limitOption(20) },
  json: 'print JSON, the document of each run',
  examples: [
    'sluice schedules history',
    "sluice schedules history nightly --limit 1 --json | jq '.[0].items[].job_id'",
  ],
  inSession: async (call) => {
    const { argument: name, flags, system, baseUrl } = call;
    const { db } = system;
    const environment = flags.env === undefined ? null : await requireEnvironment(call.system, flags.env);
    const filter = { environmentId: environment?.environmentId, name };
    const runs = await readRuns(db, filter, flags.limit);
    if (call.json) return call.terminal.json(await renderScheduleRuns(db, runs, baseUrl));
    const rows = runs.map((run) => ({
      schedule: run.name,
      environment: run.environment,
      ...renderShortRun(run),
      message: run.reason,
    }));
    printList(call, rows, {
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
    'Runs loads and exports by the clock. They are stored by `apply`, the API or the console, and done by the workers of\n' +
    '`sluice start` and `sluice work`.',
  examples: ['sluice schedules apply sluice.schedules.yaml', 'sluice schedules history nightly-users'],
  commands: [apply, list, remove, run, pause, resume, history],
});
