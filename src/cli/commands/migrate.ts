import type { Command } from 'commander';
import { prepareDatabase } from '../../postgres/prepare.ts';
import type { Cli } from '../cli.ts';
import { provideForCommand, requireData } from '../session/provide-for-command.ts';
import { readSettings } from '../settings.ts';

export function addMigrateCommand(program: Command, cli: Cli): void {
  program
    .command('migrate')
    .summary('bring the database up to date')
    .description(
      'Applies the migrations that the database lacks, under a lock. Every start does this by itself; the command is for\n' +
        'those who want to see it done before. Doing it twice does no harm.',
    )
    .addHelpText('after', '\nExamples:\n  $ DATABASE_URL=postgres://… sluice migrate')
    .action((_options, command: Command) => migrate(cli, command));
}

async function migrate(cli: Cli, command: Command): Promise<void> {
  const { config, commandLog } = readSettings(cli, command);
  await requireData(config);
  const log = commandLog('migrate');
  const database = await provideForCommand(config, log);
  try {
    await prepareDatabase(database.url, config.redisUrl === null, log);
    cli.terminal.print('The database is up to date.');
  } finally {
    await database.stop();
  }
}
