import type { Command } from 'commander';
import { readRunItems, readRuns } from '../../postgres/stores/schedule-run-items.ts';
import { renderRun } from '../../schedules/render-run.ts';
import type { Cli } from '../cli.ts';
import { parseCount } from '../import/parse-options.ts';
import { runCells, runColumns } from '../schedules/print-run.ts';
import { requireEnvironment, withSession } from '../session/session.ts';
import { renderTable } from '../table.ts';

interface Flags {
  readonly env?: string;
  readonly limit: number;
  readonly json: boolean;
}

export function addSchedulesHistoryCommand(schedules: Command, cli: Cli): void {
  schedules
    .command('history')
    .summary('the latest runs')
    .description(
      'Lists runs of schedules, the latest due time first, also of schedules that are no longer in the file.',
    )
    .argument('[name]', 'only of this schedule')
    .option('--env <name>', 'only of this environment')
    .option('--limit <n>', 'how many', parseCount, 20)
    .option('--json', 'print JSON, with the jobs of each run', false)
    .addHelpText(
      'after',
      `
Examples:
  $ sluice schedules history
  $ sluice schedules history nightly --limit 1 --json | jq '.[0].items[].job_id'`,
    )
    .action((name: string | undefined, flags: Flags, command: Command) => history(cli, command, name, flags));
}

async function history(cli: Cli, command: Command, name: string | undefined, flags: Flags): Promise<void> {
  await withSession(cli, command, async (session) => {
    const { db } = session.system;
    const environment = flags.env === undefined ? null : await requireEnvironment(session, flags.env);
    const filter = {
      ...(environment !== null && { environmentId: environment.environmentId }),
      ...(name !== undefined && { name }),
    };
    const found = await readRuns(db, filter, flags.limit);
    const runs = await Promise.all(
      found.map(async (run) => ({ run, items: await readRunItems(db, run.runId) })),
    );
    if (flags.json) return cli.terminal.json(runs.map(({ run, items }) => renderRun(run, items)));
    if (runs.length === 0) return cli.terminal.note('There are no such runs.');
    const cells = runs.map(({ run, items }) => runCells(run, items));
    for (const line of renderTable(runColumns, cells)) cli.terminal.print(line);
  });
}
