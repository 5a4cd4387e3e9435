import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { addSchedulesCheckCommand } from './schedules-check.ts';
import { addSchedulesHistoryCommand } from './schedules-history.ts';
import { addSchedulesListCommand } from './schedules-list.ts';
import { addSchedulesRunCommand } from './schedules-run.ts';

export function addSchedulesCommand(program: Command, cli: Cli): void {
  const schedules = program
    .command('schedules')
    .summary('loads and exports that run by the clock')
    .description(
      'Loads and exports that run by the clock. They are written in the file that SCHEDULES_FILE names, and done by the\n' +
        'workers of `sluice start` and `sluice work`.',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  $ sluice schedules check sluice.schedules.yaml\n  $ sluice schedules history nightly-users',
    );
  addSchedulesCheckCommand(schedules, cli);
  addSchedulesListCommand(schedules, cli);
  addSchedulesRunCommand(schedules, cli);
  addSchedulesHistoryCommand(schedules, cli);
}
