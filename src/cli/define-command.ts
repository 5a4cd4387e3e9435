/**
 * How a command is defined: its words, its options with their types, its examples, and what it does. A command file holds
 * what is its own; --env, --json, the layout of the help and the settings that flags give are the same everywhere.
 */
import type { Command } from 'commander';
import { defaultEnvironmentName } from '../postgres/stores/environments.ts';
import type { ArgumentOf, OptionOf } from './options.ts';
import type { EnvironmentSession, Session } from './session.ts';
import type { Cli } from './settings.ts';
import type { Terminal } from './terminal.ts';

type Options = Readonly<Record<string, OptionOf<unknown>>>;
type Flags<O extends Options> = { readonly [K in keyof O]: ReturnType<O[K]['read']> };

/** One call of a command. */
export interface Invocation<F = unknown, A = unknown> {
  readonly cli: Cli;
  readonly command: Command;
  readonly terminal: Terminal;
  readonly flags: F;
  readonly argument: A;
  /** Of --env. */
  readonly env: string;
  /** The result is for a script. */
  readonly json: boolean;
}

interface CommandSpec<O extends Options, A> {
  readonly name: string;
  /** In the list of commands. */
  readonly summary: string;
  readonly description: string;
  readonly argument?: ArgumentOf<A>;
  readonly options?: O;
  /** Takes --env; a text if it is not just the environment. */
  readonly environment?: true | string;
  /** Takes --json; a text if that says more than that JSON is printed. */
  readonly json?: true | string;
  /** Options of others are passed on as arguments. */
  readonly passesOptions?: true;
  /** Stands before the examples: exit codes, mostly. */
  readonly details?: string;
  readonly examples: readonly string[];
  readonly commands?: readonly AddCommand[];
  /** What it does: as it is called, or with the database at hand, or with that and the environment of --env. One of them. */
  readonly run?: (call: Invocation<Flags<O>, A>) => Promise<void> | void;
  readonly inSession?: (call: Invocation<Flags<O>, A> & Session) => Promise<void>;
  readonly inEnvironment?: (call: Invocation<Flags<O>, A> & EnvironmentSession) => Promise<void>;
}

/** Puts a command under another. */
export type AddCommand = (parent: Command, cli: Cli) => void;

export function defineCommand<const O extends Options = Record<never, never>, A = undefined>(
  spec: CommandSpec<O, A>,
): AddCommand {
  const { argument, environment, json } = spec;
  const options = Object.entries(spec.options ?? {});
  return (parent, cli) => {
    const command = parent
      .command(spec.name)
      .summary(spec.summary)
      .description(spec.description)
      .addHelpText('after', helpAfter(spec));
    if (argument !== undefined) command.argument(argument.name, argument.description);
    for (const [, { option }] of options) command.addOption(option);
    if (environment !== undefined) {
      command.option('--env <name>', wording(environment, 'environment'), defaultEnvironmentName);
    }
    if (json !== undefined) command.option('--json', wording(json, 'print JSON'), false);
    if (spec.passesOptions === true) command.allowUnknownOption();
    for (const add of spec.commands ?? []) add(command, cli);
    const run = runOf(spec);
    if (run === null) return;
    command.action(async () => {
      (await import('./settings.ts')).warnOfMisspelt(cli);
      const given = command.opts<Record<string, unknown>>();
      const all = command.optsWithGlobals<{ env?: string; json?: boolean }>();
      const flags = options.map(([key, { option, read }]) => [key, read(given[option.attributeName()])]);
      return run({
        cli,
        command,
        terminal: cli.terminal,
        flags: Object.fromEntries(flags) as Flags<O>,
        argument: argument?.read(command.processedArgs[0]) as A,
        env: all.env ?? defaultEnvironmentName,
        json: all.json === true,
      });
    });
  };
}

function runOf<O extends Options, A>({ run, inSession, inEnvironment }: CommandSpec<O, A>) {
  if (run !== undefined) return run;
  if (inSession === undefined && inEnvironment === undefined) return null;
  return async (call: Invocation<Flags<O>, A>): Promise<void> => {
    // Loaded when it is needed: it brings the whole system.
    const { withEnvironment, withSession } = await import('./session.ts');
    if (inSession !== undefined) await withSession(call, (session) => inSession({ ...call, ...session }));
    if (inEnvironment !== undefined)
      await withEnvironment(call, (session) => inEnvironment({ ...call, ...session }));
  };
}

function wording(own: true | string, usual: string): string {
  return own === true ? usual : own;
}

function helpAfter({
  details,
  examples,
}: Pick<CommandSpec<Options, unknown>, 'details' | 'examples'>): string {
  const before = details === undefined ? '' : `\n${details}\n`;
  return `${before}\nExamples:\n${examples.map((example) => `  $ ${example}`).join('\n')}`;
}
