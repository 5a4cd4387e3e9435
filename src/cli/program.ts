/*
 * The command line. A file holds the commands of one noun, made by `defineCommand` (`define-command.ts`),
 * which gives each its session, `--json`, examples and exit codes. `service/` runs the long ones: start,
 * serve, work.
 */
import { Command, Help } from 'commander';
import { readPackage } from '../package-root.ts';
import type { AddCommand } from './define-command.ts';
import { addGlobalOptions, type Cli } from './settings.ts';

const described = new Help();

/** In the order of the help. What a command needs is loaded with it: half a second of processor time for all of them. */
const commands: Readonly<Record<string, () => Promise<AddCommand>>> = {
  start: async () => (await import('./serve.ts')).start,
  import: async () => (await import('./import.ts')).importFiles,
  inspect: async () => (await import('./inspect.ts')).inspect,
  export: async () => (await import('./export.ts')).exportData,
  delete: async () => (await import('./delete.ts')).deleteData,
  users: async () => (await import('./users.ts')).users,
  companies: async () => (await import('./companies.ts')).companies,
  events: async () => (await import('./events.ts')).events,
  jobs: async () => (await import('./jobs.ts')).jobs,
  inbox: async () => (await import('./inbox.ts')).inbox,
  definitions: async () => (await import('./definitions.ts')).definitions,
  mappings: async () => (await import('./mappings.ts')).mappings,
  segments: async () => (await import('./segments.ts')).segments,
  notifications: async () => (await import('./notifications.ts')).notifications,
  schedules: async () => (await import('./schedules.ts')).schedules,
  keys: async () => (await import('./keys.ts')).keys,
  console: async () => (await import('./console.ts')).consoleCommand,
  env: async () => (await import('./environments.ts')).environments,
  serve: async () => (await import('./serve.ts')).serve,
  work: async () => (await import('./work.ts')).work,
  move: async () => (await import('./move.ts')).move,
  migrate: async () => (await import('./database.ts')).migrate,
  doctor: async () => (await import('./doctor.ts')).doctor,
  status: async () => (await import('./status.ts')).status,
  prune: async () => (await import('./prune.ts')).prune,
  backup: async () => (await import('./backup.ts')).backup,
  restore: async () => (await import('./backup.ts')).restore,
  upgrade: async () => (await import('./upgrade.ts')).upgrade,
  db: async () => (await import('./database.ts')).db,
  psql: async () => (await import('./database.ts')).psql,
  config: async () => (await import('./config.ts')).config,
  demo: async () => (await import('../../examples/demo/demo.ts')).demo,
};

/**
 * The `sluice` command with the subcommands that are among `words`, or, if none is (help, a mistake), with all of them.
 * Parsing it runs one of them.
 */
export async function createProgram(cli: Cli, words: readonly string[]): Promise<Command> {
  const program = new Command('sluice');
  program
    .description('Loads users, companies and events into PostgreSQL exactly once, and exports them.')
    .version(readPackage().version, '-v, --version', 'print the version')
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
      writeErr: (text) => cli.terminal.inform(text.replace(/\n$/, '')),
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
