/*
 * The command line. Most commands are in a file `cli.ts`, such as `src/jobs/cli.ts`. `service.ts`
 * and `work.ts` contain the commands that run until they are stopped: start, serve, work.
 */
import { existsSync, readFileSync } from 'node:fs';
import { loadEnvFile } from 'node:process';
import { parseEnv } from 'node:util';
import { Command, CommanderError, Help } from 'commander';
import { messageOf } from '../base/errors.ts';
import { readPackage } from '../base/package-root.ts';
import { defineCommand, hidden, optional, text } from '../cli/define-command.ts';
import { exitCodes, explainError, UsageError } from '../cli/errors.ts';
import { type AddCommand, addGlobalOptions, type Cli } from '../cli/settings.ts';
import { createTerminal, type Terminal } from '../cli/terminal.ts';
import { OptionTable } from '../domain/option-table.ts';
import { ExportOptions } from '../export/options.ts';
import { capabilities } from '../registry.ts';

export async function run(words: readonly string[]): Promise<void> {
  const processEnv = process.env;
  // On Node 20, the SDK for S3 prints eight lines about later versions, which sluice does not use.
  processEnv['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true';
  const terminal = createTerminal(processEnv);
  let program: Command | null = null;
  let exitCode: number = exitCodes.ok;
  try {
    const fromDotEnv = loadDotEnv('.env');
    const cli = { processEnv, fromDotEnv, terminal, entry: process.argv[1] ?? '' };
    program = await createProgram(cli, words);
    await program.parseAsync(words, { from: 'user' });
    exitCode = Number(process.exitCode ?? exitCodes.ok);
  } catch (error) {
    const level = program?.opts<{ logLevel?: string }>().logLevel ?? processEnv['LOG_LEVEL'];
    exitCode = report(error, terminal, level === 'debug' || level === 'trace');
  }
  // Output to a pipe is asynchronous, so the exit waits for it. Open handles must not keep the
  // process alive after that.
  process.stdout.write('', () => process.exit(exitCode));
}

function report(error: unknown, terminal: Terminal, debugging: boolean): number {
  // Commander has already printed the error.
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  const { message, exitCode, unforeseen } = explainError(error, optionTable);
  terminal.inform(`sluice: ${message}`);
  if (debugging && error instanceof Error) terminal.inform(String(error.stack));
  else if (unforeseen) terminal.inform('LOG_LEVEL=debug shows where it happened.');
  return exitCode;
}

/**
 * Sets the environment variables in `.env`, except those that are already set. Returns the names of
 * the variables that it has set. @throws UsageError if the file cannot be read
 */
function loadDotEnv(path: string): ReadonlySet<string> {
  if (!existsSync(path)) return new Set();
  try {
    const names = Object.keys(parseEnv(readFileSync(path, 'utf8')));
    const newNames = names.filter((name) => process.env[name] === undefined);
    loadEnvFile(path);
    return new Set(newNames);
  } catch (error) {
    const why = messageOf(error);
    throw new UsageError(`The file .env of this folder cannot be read: ${why}`);
  }
}

const defaultHelp = new Help();

const optionTable = new OptionTable(capabilities.flatMap(({ loads }) => loads ?? []));

const exportOptions = new ExportOptions(capabilities.flatMap(({ exports }) => exports ?? []));
const definitionLists = () => Promise.all(capabilities.flatMap((each) => each.definitions?.() ?? []));

const deletionOptions = capabilities.flatMap(({ deletions }) => deletions?.option ?? []);

/**
 * Commands in the order of the help. Each is loaded on demand, because loading all of them takes
 * half a second of processor time.
 */
const commands: readonly (readonly [word: string, load: () => Promise<AddCommand>])[] = [
  ...Object.entries({
    start: async () => (await import('./service.ts')).start,
    import: async () => {
      const { findExportFolder: find, importFolder: load } = await import('../export/import-folder.ts');
      return (await import('../load/cli.ts')).importFiles({ find, load });
    },
    export: async () => (await import('../export/cli.ts')).exportData,
    delete: async () => (await import('../deletion/cli.ts')).deleteData(deletionOptions),
    api: async () => (await import('../access/api-cli.ts')).api,
    jobs: async () => (await import('../jobs/cli.ts')).jobs,
    definitions: async () => (await import('../lookups/cli.ts')).definitions,
  }),
  ...capabilities.flatMap((each) => Object.entries(each.commands ?? {})),
  ...Object.entries({
    keys: async () => (await import('../access/cli.ts')).keys,
    console: async () => (await import('../access/cli.ts')).consoleCommand,
    env: async () => (await import('../access/cli.ts')).environments,
    serve: async () => (await import('./service.ts')).serve,
    work: async () => (await import('./work.ts')).work,
    migrate: async () => (await import('./database.ts')).migrate,
    status: async () => (await import('../jobs/status.ts')).status,
    prune: async () => (await import('./database.ts')).prune,
    db: async () => (await import('./database.ts')).db,
    psql: async () => (await import('./database.ts')).psql,
    completion: async () => completion,
    config: async () => (await import('../jobs/status.ts')).config,
    demo: async () => (await import('../../examples/demo/demo.ts')).demo,
  }),
];

/**
 * Adds the subcommands that occur in `words`. If none occur, for example because of a typing error,
 * adds all of them.
 */
export async function createProgram(
  caller: Pick<Cli, 'processEnv' | 'fromDotEnv' | 'terminal' | 'entry'>,
  words: readonly string[],
): Promise<Command> {
  const cli: Cli = {
    ...caller,
    openSystem: async (options) => (await import('./open-system.ts')).openSystem(options),
    requireEnvironment: async (system, name) =>
      (await import('../access/acts.ts')).requireEnvironment(system, name),
    figures: () => Promise.all(capabilities.flatMap((each) => each.figures?.() ?? [])),
    rewriter: capabilities.find((each) => each.rewriter)?.rewriter ?? null,
    optionTable,
    exportOptions,
    definitionLists,
    declaredSections: async () => [
      (await import('../lookups/apply-definitions.ts')).definitionsSection(await definitionLists()),
      ...(await Promise.all(capabilities.flatMap((each) => each.declares?.() ?? []))),
    ],
  };
  const program = new Command('sluice');
  program
    .description('Loads users, companies and events into PostgreSQL exactly once, and exports them.')
    .version(readPackage().version, '-v, --version', 'print the version')
    .helpCommand('help [command]', 'show what a command does')
    .showHelpAfterError('(see --help)')
    .configureHelp({
      showGlobalOptions: true,
      sortSubcommands: false,
      // Descriptions wrap at the width of the terminal, not at the line breaks in the source.
      commandDescription: (command) => command.description().replaceAll('\n', ' '),
      optionDescription: (option) =>
        defaultHelp.optionDescription(option).replace(/ \(default: (?:false|null|\{\})\)$/, ''),
    })
    .configureOutput({
      writeOut: (text) => cli.terminal.print(text.replace(/\n$/, '')),
      writeErr: (text) => cli.terminal.inform(text.replace(/\n$/, '')),
    })
    .exitOverride();
  addGlobalOptions(program);
  for (const load of neededCommands(words)) (await load())(program, cli);
  return program;
}

function neededCommands(words: readonly string[]): readonly (() => Promise<AddCommand>)[] {
  const matches = commands.filter(([name]) => words.includes(name));
  const listsAll = words.includes('help') || words.includes('completion');
  const selection = listsAll || matches.length === 0 ? commands : matches;
  return selection.map(([, load]) => load);
}

/** The shell script asks the program for the words that can follow. */
const bash = `_sluice() {
  local current="\${COMP_WORDS[COMP_CWORD]}" words
  words="$(sluice completion --words "\${COMP_WORDS[*]:1:COMP_CWORD-1}" 2>/dev/null)"
  [[ "$current" == -* ]] || words="$(grep -v '^-' <<< "$words")"
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _sluice sluice
`;

const scripts: Readonly<Record<string, string>> = {
  bash,
  zsh: `autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n${bash}`,
  fish: `complete -c sluice -a '(sluice completion --words (commandline -opc | tail -n +2 | string join " ") 2>/dev/null)'\n`,
};

const completion = defineCommand({
  name: 'completion',
  summary: 'a script that completes commands and options in bash, zsh or fish',
  description:
    'Prints a script for the shell. Load it in each new shell, or save it where the shell looks for completions.',
  argument: optional('[shell]', 'bash, zsh or fish'),
  options: { words: hidden(text('--words <text>', 'list what may follow these words')) },
  examples: [
    'source <(sluice completion bash)   # in ~/.bashrc; zsh: in ~/.zshrc',
    'sluice completion fish > ~/.config/fish/completions/sluice.fish',
  ],
  run: async ({ command, terminal, argument, flags }) => {
    const program = command.parent ?? command;
    if (flags.words !== undefined) return terminal.write(`${listNext(program, flags.words).join('\n')}\n`);
    const script = scripts[argument ?? ''];
    if (script === undefined) throw new UsageError('The shells are bash, zsh and fish.');
    await terminal.write(script);
  },
});

function listNext(program: Command, line: string): string[] {
  const words = line.split(' ').filter((word) => word !== '');
  let command = program;
  for (const word of words) command = command.commands.find((each) => each.name() === word) ?? command;
  const options = [...new Set([...command.options, ...program.options])].filter((option) => !option.hidden);
  const typed = words.at(-1) ?? '';
  const last = options.find(({ short, long }) => [short, long].includes(typed));
  if (last?.required === true) return last.argChoices ?? [];
  return [
    ...command.commands.map((each) => each.name()),
    ...options.flatMap(({ short, long }) => [short, long].filter((flag) => flag !== undefined)),
    '--help',
  ];
}
