import { setTimeout as delay } from 'node:timers/promises';
import type { Command } from 'commander';
import { readInstant } from '../../domain/instant.ts';
import { readRunItems, readRuns, type ScheduleRun } from '../../postgres/stores/schedule-run-items.ts';
import { askForRun } from '../../schedules/ask-for-run.ts';
import { renderRun } from '../../schedules/render-run.ts';
import type { Schedule } from '../../schedules/schedule.ts';
import type { Cli } from '../cli.ts';
import { CommandFailed, exitCodes, UsageError } from '../exit-codes.ts';
import { readFileInForce } from '../schedules/file-in-force.ts';
import { runCells, runColumns, showTime } from '../schedules/print-run.ts';
import { requireEnvironment, type Session, withSession } from '../session/session.ts';
import { countLiveWorkers } from '../session/workers.ts';
import { readSettings } from '../settings.ts';
import { listenForStop } from '../stop-signals.ts';
import { renderTable } from '../table.ts';

interface Flags {
  readonly file?: string;
  readonly due?: string;
  readonly wait: boolean;
  readonly json: boolean;
}

const pollMs = 500;

export function addSchedulesRunCommand(schedules: Command, cli: Cli): void {
  schedules
    .command('run')
    .summary('run a schedule now')
    .description(
      'Makes a run of a schedule, whatever the clock says; the workers of `sluice start` or `sluice work` do it. With --due\n' +
        'it stands for that time; if the run of that time failed or was skipped, it is done again, and loads nothing twice.',
    )
    .argument('<name>', 'of the schedule')
    .option('--due <instant>', 'the time that it stands for, such as 2026-11-20T03:00:00Z; default: now')
    .option('--wait', 'until it has ended', false)
    .option('--file <file>', 'another file than SCHEDULES_FILE')
    .option('--json', 'print JSON', false)
    .addHelpText(
      'after',
      `
Exit code: 0 it is queued, or, with --wait, it went well; 1 it failed, or no
worker is there; 2 there is no such schedule, or the file is wrong; 130 stopped
while waiting: the run goes on.

Examples:
  $ sluice schedules run nightly-users --wait
  $ sluice schedules run nightly-users --due 2026-11-20T02:00:00Z`,
    )
    .action((name: string, flags: Flags, command: Command) => run(cli, command, name, flags));
}

async function run(cli: Cli, command: Command, name: string, flags: Flags): Promise<void> {
  const stop = listenForStop();
  const dueAt = readDue(flags.due);
  const schedules = await readFileInForce(readSettings(cli, command).config, flags.file);
  const schedule = schedules.find((each) => each.name === name);
  if (schedule === undefined) {
    throw new UsageError(`The file has no schedule ${name}; \`sluice schedules list\` shows those it has.`);
  }
  await withSession(cli, command, async (session) => {
    const { db } = session.system;
    const { environmentId } = await requireEnvironment(session, schedule.environment);
    const outcome = await askForRun(db, environmentId, schedule, dueAt, new Date());
    if (outcome === 'known') cli.terminal.note('There is a run of that time already.');
    const hasWorkers = (await countLiveWorkers(session.system)) > 0;
    if (flags.wait && !hasWorkers) {
      throw new CommandFailed(
        'It is queued, but no worker is there. Start one: `sluice start`, with SCHEDULES_FILE set.',
      );
    }
    const look = () => findRun(session, environmentId, schedule, dueAt);
    let found = await look();
    let told: string | null = null;
    while (flags.wait && found.endedAt === null && !stop.signal.aborted) {
      if (found.status === 'queued' && found.lastError !== null && found.lastError !== told) {
        told = found.lastError;
        cli.terminal.note(`It will be tried again: ${told}`);
      }
      await delay(pollMs, undefined, { signal: stop.signal }).catch(() => undefined);
      found = await look();
    }
    const items = await readRunItems(db, found.runId);
    if (flags.json) cli.terminal.json(renderRun(found, items));
    else for (const line of renderTable(runColumns, [runCells(found, items)])) cli.terminal.print(line);
    if (!flags.wait && !hasWorkers) cli.terminal.note('No worker is there; it is done when one is.');
    process.exitCode = exitCodeOf(found, flags);
  });
}

/** The database keeps microseconds and a Date does not: a time with more digits would not be found again. */
function readDue(text: string | undefined): Date {
  if (text === undefined) return new Date();
  const instant = readInstant(text);
  if (instant === null) throw new UsageError('--due: write an instant such as 2026-11-20T03:00:00Z.');
  if (instant.ms > Date.now()) throw new UsageError('--due: that time has not come yet.');
  return new Date(instant.ms);
}

async function findRun(
  { system: { db } }: Session,
  environmentId: number,
  { name }: Schedule,
  dueAt: Date,
): Promise<ScheduleRun> {
  const [found] = await readRuns(db, { environmentId, name, dueAt }, 1);
  if (found === undefined) throw new CommandFailed(`The run of ${showTime(dueAt)} is gone.`);
  return found;
}

function exitCodeOf({ status, endedAt }: ScheduleRun, { wait }: Flags): number {
  if (status === 'failed') return exitCodes.failed;
  return wait && endedAt === null ? exitCodes.interrupted : exitCodes.ok;
}
