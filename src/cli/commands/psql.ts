import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { CommandFailed } from '../exit-codes.ts';
import { provideForCommand, requireData } from '../session/provide-for-command.ts';
import { readSettings } from '../settings.ts';

export function addPsqlCommand(program: Command, cli: Cli): void {
  program
    .command('psql')
    .summary('psql on the database')
    .description(
      'Runs psql, which must be installed, on the database: DATABASE_URL, or the embedded\n' +
        'server, which is started for as long as it takes if it does not run. What stands\n' +
        'behind psql is passed on to it. The schema sluice is on the search path.',
    )
    .argument('[words...]', 'flags and arguments of psql')
    .allowUnknownOption()
    .addHelpText(
      'after',
      '\nExit code: that of psql; 1 if there is none.\n\nExamples:\n  $ sluice psql\n  $ sluice psql -c "select count(*) from users"\n  $ sluice psql --csv -f report.sql > report.csv',
    )
    .action((words: string[], _options, command: Command) => run(cli, command, words));
}

async function run(cli: Cli, command: Command, words: readonly string[]): Promise<void> {
  const { config, commandLog } = readSettings(cli, command);
  await requireData(config);
  const database = await provideForCommand(config, commandLog('psql'));
  // Ctrl-C reaches the whole group: it ends a query of psql, not us.
  process.on('SIGINT', () => undefined);
  try {
    process.exitCode = await runPsql(database.url, words, cli.environment);
  } finally {
    await database.stop();
  }
}

/** The password goes by the environment: everybody can read a command line. */
async function runPsql(
  databaseUrl: string,
  words: readonly string[],
  environment: Cli['environment'],
): Promise<number> {
  const url = new URL(databaseUrl);
  const password = decodeURIComponent(url.password);
  url.password = '';
  const psql = spawn('psql', ['--dbname', url.href, ...words], {
    stdio: 'inherit',
    env: {
      PGOPTIONS: '--search_path=sluice,public',
      ...environment,
      ...(password === '' ? {} : { PGPASSWORD: password }),
    },
  });
  try {
    const [code, signal] = (await once(psql, 'exit')) as [number | null, NodeJS.Signals | null];
    return code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
  } catch (error) {
    const missing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    if (!missing) throw error;
    throw new CommandFailed(
      'There is no psql here, and the embedded PostgreSQL brings none. Install the client of PostgreSQL\n' +
        '(postgresql-client, libpq), or give another program what `sluice db url` prints.',
    );
  }
}
