/**
 * How a command is defined: its words, its options with their types, its examples, and what it does. A command file holds
 * what is its own; --env, --json, the layout of the help and the settings that flags give are the same everywhere.
 */
import { type Command, Option } from 'commander';
import { defaultEnvironmentName } from '../access/environments.ts';
import type { Terminal } from './terminal.ts';

/** Environment variables, as a process has them. */
export type ProcessEnv = Readonly<Record<string, string | undefined>>;

/** What every command works with; made once, by `main.ts`. */
export interface Cli {
  readonly processEnv: ProcessEnv;
  /** The variables of `processEnv` that the file .env gave. */
  readonly fromDotEnv: ReadonlySet<string>;
  readonly terminal: Terminal;
  /** The script to run for another process of ours. */
  readonly entry: string;
}

/** An option and the type of what it gives. */
export interface OptionOf<T> {
  readonly option: Option;
  readonly read: (given: unknown) => T;
}
type Options = Readonly<Record<string, OptionOf<unknown>>>;
type Flags<O extends Options> = { readonly [K in keyof O]: ReturnType<O[K]['read']> };

function optionOf<T>(option: Option): OptionOf<T> {
  return { option, read: (given) => given as T };
}

/** `--dry-run`; `--no-wait` is true unless given. */
export function flag(flags: string, description: string): OptionOf<boolean> {
  const option = new Option(flags, description);
  return optionOf(option.negate ? option : option.default(false));
}

/** Not in the help: between our own processes. */
export function hidden<T>({ option, read }: OptionOf<T>): OptionOf<T> {
  return { option: option.hideHelp(), read };
}

export function text(flags: string, description: string): OptionOf<string | undefined>;
export function text(flags: string, description: string, fallback: string): OptionOf<string>;
export function text(flags: string, description: string, fallback?: string): OptionOf<string | undefined> {
  return optionOf(new Option(flags, description).default(fallback));
}

type Parse<T> = (text: string, earlier: T) => T;

/** `parse` throws commander's InvalidArgumentError; `earlier` is the value so far of an option that is repeated. */
export function parsed<T>(flags: string, description: string, parse: Parse<T>): OptionOf<T | undefined>;
export function parsed<T>(flags: string, description: string, parse: Parse<T>, fallback: T): OptionOf<T>;
export function parsed<T>(flags: string, description: string, parse: Parse<T>, fallback?: T): OptionOf<T> {
  return optionOf(new Option(flags, description).argParser(parse).default(fallback));
}

export function choice<const T extends string>(
  flags: string,
  description: string,
  choices: readonly T[],
): OptionOf<T | undefined>;
export function choice<const T extends string>(
  flags: string,
  description: string,
  choices: readonly T[],
  fallback: T,
): OptionOf<T>;
export function choice(flags: string, description: string, choices: readonly string[], fallback?: string) {
  return optionOf<string | undefined>(new Option(flags, description).choices(choices).default(fallback));
}

/** An option that may be given any number of times. */
export function repeated(flags: string, description: string): OptionOf<readonly string[]> {
  return parsed<readonly string[]>(flags, description, (one, earlier) => [...earlier, one], []);
}

/** The argument of a command: `<one>`, `[one]`, `<several...>` or `[several...]`. */
export interface ArgumentOf<A> {
  readonly name: string;
  readonly description: string;
  readonly read: (given: unknown) => A;
}

/** `<name>` */
export function required(name: string, description?: string): ArgumentOf<string>;
export function required<A>(name: string, description: string, parse: (text: string) => A): ArgumentOf<A>;
export function required<A>(name: string, description = '', parse?: (text: string) => A) {
  return {
    name,
    description,
    read: (given: unknown) => (parse === undefined ? given : parse(String(given))),
  };
}

/** `[name]` */
export function optional(name: string, description: string): ArgumentOf<string | undefined> {
  return { name, description, read: (given) => given as string | undefined };
}

/** `<names...>` or `[names...]` */
export function several(name: string, description: string): ArgumentOf<readonly string[]> {
  return { name, description, read: (given) => given as readonly string[] };
}

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
  readonly run?: (invocation: Invocation<Flags<O>, A>) => Promise<void> | void;
}

/** Puts a command under another. */
export type AddCommand = (parent: Command, cli: Cli) => void;

export function defineCommand<const O extends Options = Record<never, never>, A = undefined>(
  spec: CommandSpec<O, A>,
): AddCommand {
  const { name, summary, description, argument, options, environment, json, run } = spec;
  return (parent, cli) => {
    const command = parent
      .command(name)
      .summary(summary)
      .description(description)
      .addHelpText('after', helpAfter(spec));
    if (argument !== undefined) command.argument(argument.name, argument.description);
    for (const { option } of Object.values(options ?? {})) command.addOption(option);
    if (environment !== undefined) {
      command.option('--env <name>', wording(environment, 'environment'), defaultEnvironmentName);
    }
    if (json !== undefined) command.option('--json', wording(json, 'print JSON'), false);
    if (spec.passesOptions === true) command.allowUnknownOption();
    for (const add of spec.commands ?? []) add(command, cli);
    if (run === undefined) return;
    command.action(async () => {
      const given = command.opts<Record<string, unknown>>();
      const all = command.optsWithGlobals<{ env?: string; json?: boolean }>();
      const [first] = command.processedArgs as unknown[];
      const flags = Object.entries(options ?? {}).map(([key, { option, read }]) => [
        key,
        read(given[option.attributeName()]),
      ]);
      await run({
        cli,
        command,
        terminal: cli.terminal,
        flags: Object.fromEntries(flags) as Flags<O>,
        argument: argument?.read(first) as A,
        env: all.env ?? defaultEnvironmentName,
        json: all.json === true,
      });
    });
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
