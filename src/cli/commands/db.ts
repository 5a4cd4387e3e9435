import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { findDatabase } from '../session/find-database.ts';
import { readSettings } from '../settings.ts';

export function addDbCommand(program: Command, cli: Cli): void {
  const db = program
    .command('db')
    .summary('where the database is')
    .description('Tells how other programs reach the database.')
    .addHelpText('after', '\nExamples:\n  $ sluice db url');
  db.command('url')
    .summary('the URL of the database')
    .description(
      'Prints the URL of the database: DATABASE_URL, or that of the embedded server while it\n' +
        'runs, with its password, which only the owner of the data directory may read. The\n' +
        'port of the embedded server may be another after each start. The tables are in the\n' +
        'schema sluice.',
    )
    .addHelpText(
      'after',
      '\nExit code: 0; 1 if no server runs.\n\nExamples:\n  $ sluice db url\n  $ pg_dump --dbname="$(sluice db url)" --file=sluice.sql',
    )
    .action((_options, command: Command) => printUrl(cli, command));
}

async function printUrl(cli: Cli, command: Command): Promise<void> {
  const { config } = readSettings(cli, command);
  cli.terminal.print(await findDatabase(config));
}
