/** `sluice migrate`, `sluice psql`, `sluice db url` and `sluice prune`. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import { defineCommand, several } from '../cli/define-command.ts';
import { CommandFailed, exitCodes } from '../cli/errors.ts';
import { findDatabase, provideForCommand, requireData } from '../cli/session.ts';
import { type ProcessEnv, readSettings } from '../cli/settings.ts';
import { printRecord } from '../cli/terminal.ts';
import { prune as pruneAll } from '../jobs/prune.ts';
import { prepareDatabase } from '../queue/provide-database.ts';

export const migrate = defineCommand({
  name: 'migrate',
  summary: 'bring the database up to date',
  description:
    'Applies the migrations that the database lacks, under a lock. Every start does this by itself; the command\n' +
    'does it beforehand. Repeating it does no harm.',
  examples: ['DATABASE_URL=postgres://… sluice migrate'],
  run: async ({ cli, command, terminal }) => {
    const { config, commandLog } = readSettings(cli, command);
    await requireData(config);
    const log = commandLog('migrate');
    const database = await provideForCommand(config, log);
    try {
      await prepareDatabase(database.url, config.redisUrl === null, log);
      terminal.print('The database is up to date.');
    } finally {
      await database.stop();
    }
  },
});

const url = defineCommand({
  name: 'url',
  summary: 'the URL of the database',
  description:
    'Prints the URL of the database: DATABASE_URL, or that of the embedded server while it\n' +
    'runs, with its password, which only the owner of the data directory may read. The\n' +
    'port of the embedded server may change with each start. The tables are in the\n' +
    'schema sluice.',
  details: 'Exit code: 0; 1 if no server runs.',
  examples: ['sluice db url', 'pg_dump --dbname="$(sluice db url)" --file=sluice.sql'],
  run: async ({ cli, command, terminal }) =>
    terminal.print(await findDatabase(readSettings(cli, command).config)),
});

export const db = defineCommand({
  name: 'db',
  summary: 'where the database is',
  description: 'How other programs reach the database.',
  examples: ['sluice db url'],
  commands: [url],
});

export const psql = defineCommand({
  name: 'psql',
  summary: 'psql on the database',
  description:
    'Runs psql, which must be installed, on the database: DATABASE_URL, or the embedded\n' +
    'server, which is started meanwhile if it does not run. Flags and arguments are\n' +
    'passed on to psql. The schema sluice is on the search path.',
  argument: several('[words...]', 'flags and arguments of psql'),
  passesOptions: true,
  details: 'Exit code: that of psql; 1 if there is none.',
  examples: [
    'sluice psql',
    'sluice psql -c "select count(*) from users"',
    'sluice psql --csv -f report.sql > report.csv',
  ],
  run: async ({ cli, command, argument: words }) => {
    const { config, commandLog } = readSettings(cli, command);
    await requireData(config);
    const database = await provideForCommand(config, commandLog('psql'));
    // Ctrl-C reaches the whole process group. It should end a query of psql, not this process.
    process.on('SIGINT', () => undefined);
    try {
      process.exitCode = await runPsql(database.url, words, cli.processEnv);
    } finally {
      await database.stop();
    }
  },
});

/** The password is an environment variable, because command lines are visible to everybody. */
async function runPsql(
  databaseUrl: string,
  words: readonly string[],
  processEnv: ProcessEnv,
): Promise<number> {
  const url = new URL(databaseUrl);
  const password = decodeURIComponent(url.password);
  url.password = '';
  const psql = spawn('psql', ['--dbname', url.href, ...words], {
    stdio: 'inherit',
    env: {
      PGOPTIONS: '--search_path=sluice,public',
      ...processEnv,
      ...(password === '' ? {} : { PGPASSWORD: password }),
    },
  });
  try {
    const [code, signal] = (await once(psql, 'exit')) as [number | null, NodeJS.Signals | null];
    return code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    if (!isMissing) throw error;
    throw new CommandFailed(
      'There is no psql here, and the embedded PostgreSQL brings none. Install the client of PostgreSQL\n' +
        '(postgresql-client, libpq), or give another program what `sluice db url` prints.',
    );
  }
}

export const prune = defineCommand({
  name: 'prune',
  summary: 'remove what has outlived its retention, now',
  description:
    'Removes what the workers remove once a day: received files after FILE_RETENTION_DAYS, files of exports after\n' +
    'EXPORT_RETENTION_DAYS, records of jobs with their rejects after JOB_RETENTION_DAYS, events after EVENT_RETENTION_DAYS\n' +
    'or what the definitions say, changes after CHANGES_DAYS, and what killed processes left in the storage. A server may\n' +
    'run meanwhile.',
  json: 'print the counts as JSON',
  details: 'Exit code: 1 if events past their retention could not be removed.',
  examples: ['sluice prune', 'FILE_RETENTION_DAYS=1 sluice prune'],
  inSession: async (call) => {
    const { system, json, terminal } = call;
    const counts = await pruneAll(system);
    if (!json) terminal.print('Removed:');
    printRecord(call, {
      received_files: counts.files,
      files_of_exports: counts.exports,
      loads: counts.jobs,
      exports: counts.records,
      deletions: counts.deletions,
      ...counts.capabilityCounts,
      events: counts.events,
      months_of_events: counts.months,
      archived_events: counts.archived,
      unfinished_files: counts.temporary,
      problem: counts.problem,
    });
    if (counts.problem === null) return;
    terminal.inform(`Events that outlived their retention could not be removed: ${counts.problem}`);
    process.exitCode = exitCodes.failed;
  },
});
