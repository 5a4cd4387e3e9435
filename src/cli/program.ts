import { Command, Help } from 'commander';
import type { Cli } from './cli.ts';
import { addGlobalOptions } from './settings.ts';
import { readVersion } from './version.ts';

const described = new Help();

type AddCommand = (program: Command, cli: Cli) => void;

/** In the order of the help. What a command needs is loaded with it: half a second of processor time for all of them. */
const commands: Readonly<Record<string, () => Promise<AddCommand>>> = {
  start: async () => (await import('./commands/start.ts')).addStartCommand,
  import: async () => (await import('./commands/import.ts')).addImportCommand,
  export: async () => (await import('./commands/export.ts')).addExportCommand,
  delete: async () => (await import('./commands/delete.ts')).addDeleteCommand,
  jobs: async () => (await import('./commands/jobs.ts')).addJobsCommand,
  inbox: async () => (await import('./commands/inbox.ts')).addInboxCommand,
  catalogue: async () => (await import('./commands/catalogue.ts')).addCatalogueCommand,
  segments: async () => (await import('./commands/segments.ts')).addSegmentsCommand,
  notifications: async () => (await import('./commands/notifications.ts')).addNotificationsCommand,
  schedules: async () => (await import('./commands/schedules.ts')).addSchedulesCommand,
  keys: async () => (await import('./commands/keys.ts')).addKeysCommand,
  env: async () => (await import('./commands/env.ts')).addEnvCommand,
  serve: async () => (await import('./commands/serve.ts')).addServeCommand,
  work: async () => (await import('./commands/work.ts')).addWorkCommand,
  migrate: async () => (await import('./commands/migrate.ts')).addMigrateCommand,
  doctor: async () => (await import('./commands/doctor.ts')).addDoctorCommand,
  status: async () => (await import('./commands/status.ts')).addStatusCommand,
  prune: async () => (await import('./commands/prune.ts')).addPruneCommand,
  db: async () => (await import('./commands/db.ts')).addDbCommand,
  psql: async () => (await import('./commands/psql.ts')).addPsqlCommand,
  config: async () => (await import('./commands/config.ts')).addConfigCommand,
  demo: async () => (await import('./commands/demo.ts')).addDemoCommand,
};

/**
 * The `sluice` command with the subcommands that are among `words`, or, if none is (help, a mistake), with all of them.
 * Parsing it runs one of them.
 */
export async function createProgram(cli: Cli, words: readonly string[]): Promise<Command> {
  const program = new Command('sluice');
  program
    .description(
      'Loads product-analytics data, CSV, NDJSON and arrays, into Postgres: exactly once, and fast.',
    )
    .version(readVersion(), '-v, --version', 'print the version')
    .helpCommand('help [command]', 'show what a command does')
    .showHelpAfterError('(see --help)')
    .configureHelp({
      showGlobalOptions: true,
      sortSubcommands: false,
      // Wrapped to the terminal, not as the lines of the source end.
      commandDescription: (command) => command.description().replaceAll('\n', ' '),
      optionDescription: (option) =>
        described.optionDescription(option).replace(/ \(default: (?:false|\{\})\)$/, ''),
    })
    .configureOutput({
      writeOut: (text) => cli.terminal.print(text.replace(/\n$/, '')),
      writeErr: (text) => cli.terminal.note(text.replace(/\n$/, '')),
    })
    .exitOverride();
  addGlobalOptions(program);
  for (const load of needed(words)) (await load())(program, cli);
  return program;
}

function needed(words: readonly string[]): readonly (() => Promise<AddCommand>)[] {
  const all = Object.entries(commands);
  const named = all.filter(([name]) => words.includes(name));
  if (words[0] === '--version' || words[0] === '-v') return [];
  const wanted = words.includes('help') || named.length === 0 ? all : named;
  return wanted.map(([, load]) => load);
}
