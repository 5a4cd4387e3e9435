/** `sluice schedules run` and `history`: runs of schedules. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '../config.ts';
import { readInstant } from '../domain/instant.ts';
import type { Database } from '../postgres/database.ts';
import { type RunItem, readRunItems, readRuns, type ScheduleRun } from '../postgres/stores/schedule-runs.ts';
import { countLiveWorkers } from '../postgres/stores/workers.ts';
import { renderRun } from '../sources/schedules/end-run.ts';
import type { Schedule } from '../sources/schedules/schedule.ts';
import { readSchedulesFile } from '../sources/schedules/schedules-file.ts';
import { askForRun, pauseSchedule } from '../sources/schedules/start-schedules.ts';
import { defineCommand } from './define-command.ts';
import { CommandFailed, exitCodes, UsageError } from './errors.ts';
import { columnsOf, formatTime, printable, printList, printTable } from './format.ts';
import { readValidFile } from './operator-file.ts';
import { flag, optional, parseCount, parsed, required, text } from './options.ts';
import { listenForStop } from './service/stop-signals.ts';
import { requireEnvironment, withSession } from './session.ts';
import { readSettings } from './settings.ts';
import type { Terminal } from './terminal.ts';

/** The schedules of SCHEDULES_FILE, or of another file that is named. @throws UsageError */
export async function readFileInForce(
  { schedulesFile }: Config,
  named: string | undefined,
): Promise<readonly Schedule[]> {
  const file = named ?? schedulesFile;
  if (file === null)
    throw new UsageError('There is no schedules file: set SCHEDULES_FILE, or name one with --file.');
  return readValidFile(file, readSchedulesFile, 'nothing was done');
}

const pollMs = 500;
/** So long a run that is waited for may be without a worker: one that has just been started shows itself within seconds. */
const workerlessMs = 15_000;

/** A run that is asked for: of which schedule, and the time that it stands for. */
interface Wanted {
  readonly environmentId: number;
  readonly name: string;
  readonly dueAt: Date;
}

export const run = defineCommand({
  name: 'run',
  summary: 'run a schedule now',
  description:
    'Makes a run of a schedule, whatever the clock says; the workers of `sluice start` or `sluice work` do it. With --due\n' +
    'it stands for that time; if the run of that time failed or was skipped, it is done again, and loads nothing twice.',
  argument: required('<name>', 'of the schedule'),
  options: {
    due: text('--due <instant>', 'the time that it stands for, such as 2026-11-20T03:00:00Z; default: now'),
    wait: flag('--wait', 'wait until it has ended'),
    file: text('--file <file>', 'another file than SCHEDULES_FILE'),
  },
  json: true,
  details: `Exit code: 0 it is queued, or, with --wait, it went well; 1 it failed, or
there was no worker for ${workerlessMs / 1_000} s; 2 there is no such schedule, or the file is
wrong; 130 stopped while waiting: the run goes on.`,
  examples: [
    'sluice schedules run nightly-users --wait',
    'sluice schedules run nightly-users --due 2026-11-20T02:00:00Z',
  ],
  run: async (invocation) => {
    const { cli, command, argument: name, flags, terminal, json } = invocation;
    const { signal } = listenForStop();
    const dueAt = readDue(flags.due);
    const schedules = await readFileInForce(readSettings(cli, command).config, flags.file);
    const schedule = schedules.find((each) => each.name === name);
    if (schedule === undefined)
      throw new UsageError(`The file has no schedule ${name}; \`sluice schedules list\` shows those it has.`);
    await withSession(invocation, async (session) => {
      const { db } = session.system;
      const { environmentId } = await requireEnvironment(session, schedule.environment);
      const outcome = await askForRun(db, environmentId, schedule, dueAt, new Date());
      if (outcome === 'known') terminal.inform('There is a run of that time already.');
      const wanted = { environmentId, name, dueAt };
      const found = flags.wait ? await follow(db, wanted, terminal, signal) : await findRun(db, wanted);
      const items = await readRunItems(db, found.runId);
      if (json) terminal.json(renderRun(found, items));
      else printTable(terminal, runColumns, [runCells(found, items)]);
      if (!flags.wait && (await countLiveWorkers(db)) === 0) {
        terminal.inform('No worker runs; the run waits for one.');
      }
      if (found.status === 'failed') process.exitCode = exitCodes.failed;
      else process.exitCode = flags.wait && found.endedAt === null ? exitCodes.interrupted : exitCodes.ok;
    });
  },
});

/** `pause` and `resume`, which differ in a word. */
function pausing(name: 'pause' | 'resume', summary: string, description: string, done: string) {
  return defineCommand({
    name,
    summary,
    description,
    argument: required('<name>', 'of the schedule'),
    options: { file: text('--file <file>', 'another file than SCHEDULES_FILE') },
    json: true,
    details: 'Exit code: 0; 2 there is no such schedule, or the file is wrong.',
    examples: [`sluice schedules ${name} nightly-users`],
    run: async (invocation) => {
      const { cli, command, argument, flags, terminal, json } = invocation;
      const schedules = await readFileInForce(readSettings(cli, command).config, flags.file);
      const schedule = schedules.find((each) => each.name === argument);
      if (schedule === undefined)
        throw new UsageError(
          `The file has no schedule ${argument}; \`sluice schedules list\` shows those it has.`,
        );
      await withSession(invocation, async (session) => {
        const { environmentId } = await requireEnvironment(session, schedule.environment);
        await pauseSchedule(session.system.db, environmentId, schedule.name, name === 'pause', new Date());
        if (json) terminal.json({ schedule: schedule.name, paused: name === 'pause' });
        else terminal.print(`${schedule.name} ${done}`);
      });
    },
  });
}

export const pause = pausing(
  'pause',
  'pause a schedule',
  'Pauses the schedule in every process. Due times during the pause are not made up.',
  'is paused.',
);

export const resume = pausing(
  'resume',
  'resume a paused schedule',
  'The schedule has due times again from now on.',
  'is resumed.',
);

/** Looks at the run until it has ended or the signal aborts; says once why it is tried again. @throws CommandFailed without a worker */
async function follow(
  db: Database,
  wanted: Wanted,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<ScheduleRun> {
  let reported: string | null = null;
  let workerSeenAt = performance.now();
  let isMissed = false;
  for (;;) {
    const [found, workers] = await Promise.all([findRun(db, wanted), countLiveWorkers(db)]);
    if (found.endedAt !== null || signal.aborted) return found;
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
    if (found.status === 'queued' && found.lastError !== null && found.lastError !== reported) {
      reported = found.lastError;
      terminal.inform(`It will be tried again: ${reported}`);
    }
    await delay(pollMs, undefined, { signal }).catch(() => undefined);
  }
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

export const history = defineCommand({
  name: 'history',
  summary: 'the latest runs',
  description:
    'Lists runs of schedules, the latest due time first, also of schedules that are no longer in the file.',
  argument: optional('[name]', 'only of this schedule'),
  options: {
    env: text('--env <name>', 'only of this environment'),
    limit: parsed('--limit <n>', 'how many', parseCount, 20),
  },
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
    printList(call, {
      items: await Promise.all(runs.map(async (run) => ({ run, items: await readRunItems(db, run.runId) }))),
      render: ({ run, items }) => renderRun(run, items),
      columns: runColumns,
      cells: ({ run, items }) => runCells(run, items),
      none: 'There are no such runs.',
    });
  },
});

const runColumns = columnsOf('schedule', 'environment', 'due', 'status', 'why', 'ended', '>jobs', 'remark');

function runCells(run: ScheduleRun, items: readonly RunItem[]): string[] {
  const passed = run.missed > 0 ? `stands for ${run.missed} more` : '';
  const problem = run.reason ?? (run.endedAt === null ? run.lastError : null) ?? '';
  return [
    run.name,
    run.environment,
    formatTime(run.dueAt),
    run.status,
    run.cause.replace('_', ' '),
    formatTime(run.endedAt),
    String(items.filter(({ jobId }) => jobId !== null).length),
    printable([passed, problem].filter((each) => each !== '').join('; '), 160),
  ];
}
