import type { Command } from 'commander';
import { nextDueTime } from '../../schedules/due-times.ts';
import { readSchedulesFile } from '../../schedules/read-schedules-file.ts';
import type { Cli } from '../cli.ts';
import { exitCodes, UsageError } from '../exit-codes.ts';
import { explainProblems } from '../explain-problems.ts';
import { readBytes } from '../read-bytes.ts';
import { showTime } from '../schedules/print-run.ts';
import { readSettings } from '../settings.ts';
import { renderTable } from '../table.ts';

interface Flags {
  readonly json: boolean;
}

const columns = [
  { title: 'schedule' },
  { title: 'environment' },
  { title: 'what' },
  { title: 'next due' },
] as const;

export function addSchedulesCheckCommand(schedules: Command, cli: Cli): void {
  schedules
    .command('check')
    .summary('check a file')
    .description(
      'Reads a schedules file and tells everything that is wrong with it, with lines. Needs no database; whether the\n' +
        'environments and the variables that it names are there is not looked at.',
    )
    .argument('[file]', 'YAML or JSON; - for standard input; default: SCHEDULES_FILE')
    .option('--json', 'print JSON', false)
    .addHelpText(
      'after',
      `
Exit code: 0 the file is right; 2 it is wrong.

Examples:
  $ sluice schedules check sluice.schedules.yaml
  $ sluice schedules check - --json < sluice.schedules.yaml`,
    )
    .action((file: string | undefined, flags: Flags, command: Command) =>
      check(cli, file ?? fileOf(cli, command), flags),
    );
}

function fileOf(cli: Cli, command: Command): string {
  const { schedulesFile } = readSettings(cli, command).config;
  if (schedulesFile !== null) return schedulesFile;
  throw new UsageError('Name a file, or set SCHEDULES_FILE.');
}

async function check({ terminal }: Cli, file: string, { json }: Flags): Promise<void> {
  const reading = readSchedulesFile(await readBytes(file));
  if (reading.value === null) {
    if (!json)
      throw new UsageError(explainProblems(file === '-' ? 'stdin' : file, reading, 'it would be refused'));
    terminal.json({ problems: reading.problems, problem_count: reading.problemCount });
    process.exitCode = exitCodes.usage;
    return;
  }
  const rows = reading.value.map(({ name, environment, work, enabled, cron, timeZone }) => {
    const next = enabled ? nextDueTime(cron, timeZone, Date.now()) : null;
    return { name, environment, kind: work.kind, next: next === null ? null : new Date(next) };
  });
  if (json) {
    const shown = rows.map(({ next, ...row }) => ({ ...row, next_due: next?.toISOString() ?? null }));
    terminal.json({ problems: [], problem_count: 0, schedules: shown });
    return;
  }
  const cells = rows.map(({ name, environment, kind, next }) => [name, environment, kind, showTime(next)]);
  for (const line of renderTable(columns, cells)) terminal.print(line);
}
