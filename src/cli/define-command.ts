/** Defines commands, which treat --env, --json, help and settings alike. */

import { type Command, InvalidArgumentError, Option } from 'commander';
import { capitalise } from '../base/wording.ts';
import { defaultEnvironmentName } from '../domain/caller.ts';
import { UsageError } from './errors.ts';
import type { EnvironmentSession, Session } from './session.ts';
import type { AddCommand, Cli } from './settings.ts';
import type { Terminal } from './terminal.ts';

type Options = Readonly<Record<string, OptionOf<unknown>>>;
export type Flags<O extends Options> = { readonly [K in keyof O]: ReturnType<O[K]['read']> };

export interface Invocation<F = unknown, A = unknown> {
  readonly cli: Cli;
  readonly command: Command;
  readonly terminal: Terminal;
  readonly flags: F;
  readonly argument: A;
  readonly env: string;
  readonly json: boolean;
}

interface CommandSpec<O extends Options, A> {
  readonly name: string;
  readonly summary: string;
  /** Description in the help of the command. Default: the summary, as a sentence. */
  readonly description?: string;
  readonly argument?: ArgumentOf<A>;
  readonly options?: O | ((cli: Cli) => O);
  /** A string replaces the description of --env. */
  readonly environment?: true | string;
  /** A string replaces the description of --json. */
  readonly json?: true | string;
  /** Treats unknown options as arguments. */
  readonly passesOptions?: true;
  /** Text that the help shows before the examples, usually about exit codes. */
  readonly details?: string;
  readonly examples: readonly string[];
  readonly commands?: readonly AddCommand[];
  /**
   * At most one of these three functions is set. `run` has no session, `inSession` has the
   * database, and `inEnvironment` also has the environment of --env.
   */
  readonly run?: (call: Invocation<Flags<O>, A>) => Promise<void> | void;
  readonly inSession?: (call: Invocation<Flags<O>, A> & Session) => Promise<void>;
  readonly inEnvironment?: (call: Invocation<Flags<O>, A> & EnvironmentSession) => Promise<void>;
}

export function defineCommand<const O extends Options = Record<never, never>, A = undefined>(
  spec: CommandSpec<O, A>,
): AddCommand {
  const { argument, environment = spec.inEnvironment && true, json, summary } = spec;
  return (parent, cli) => {
    const options = Object.entries(
      (typeof spec.options === 'function' ? spec.options(cli) : spec.options) ?? {},
    );
    const command = parent
      .command(spec.name)
      .summary(summary)
      .description(spec.description ?? `${capitalise(summary)}.`)
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
      const values = command.opts<Record<string, unknown>>();
      const all = command.optsWithGlobals<{ env?: string; json?: boolean }>();
      const flags = options.map(([key, { option, read }]) => [key, read(values[option.attributeName()])]);
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

export function below(name: string, add: AddCommand): AddCommand {
  return (program, cli) => {
    const parent = program.commands.find((command) => command.name() === name);
    if (parent !== undefined) add(parent, cli);
  };
}

function runOf<O extends Options, A>({ run, inSession, inEnvironment }: CommandSpec<O, A>) {
  if (run !== undefined) return run;
  if (inSession === undefined && inEnvironment === undefined) return null;
  return async (call: Invocation<Flags<O>, A>): Promise<void> => {
    const { withEnvironment, withSession } = await import('./session.ts');
    if (inSession !== undefined) await withSession(call, (session) => inSession({ ...call, ...session }));
    if (inEnvironment !== undefined)
      await withEnvironment(call, (session) => inEnvironment({ ...call, ...session }));
  };
}

function wording(description: true | string, usual: string): string {
  return description === true ? usual : description;
}

function helpAfter({
  details,
  examples,
}: Pick<CommandSpec<Options, unknown>, 'details' | 'examples'>): string {
  const before = details === undefined ? '' : `\n${details}\n`;
  return `${before}\nExamples:\n${examples.map((example) => `  $ ${example}`).join('\n')}`;
}

export interface OptionOf<T> {
  readonly option: Option;
  readonly read: (value: unknown) => T;
}

function optionOf<T>(option: Option): OptionOf<T> {
  return { option, read: (value) => value as T };
}

/** A negative flag such as `--no-wait` is true unless the user passes it. */
export function flag(flags: string, description: string): OptionOf<boolean> {
  const option = new Option(flags, description);
  return optionOf(option.negate ? option : option.default(false));
}

/** Hides an option that only sluice's own processes use. */
export function hidden<T>({ option, read }: OptionOf<T>): OptionOf<T> {
  return { option: option.hideHelp(), read };
}

export function text<F extends string | undefined = undefined>(
  flags: string,
  description: string,
  fallback?: F,
): OptionOf<string | F> {
  return optionOf(new Option(flags, description).default(fallback));
}

type Parse<T> = (text: string, earlier: T) => T;

/** `parse` may throw InvalidArgumentError. For a repeated option, `earlier` is the value so far. */
export function parsed<T>(flags: string, description: string, parse: Parse<T>): OptionOf<T | undefined>;
export function parsed<T>(flags: string, description: string, parse: Parse<T>, fallback: T): OptionOf<T>;
export function parsed<T>(flags: string, description: string, parse: Parse<T>, fallback?: T): OptionOf<T> {
  return optionOf(new Option(flags, description).argParser(parse).default(fallback));
}

export function choice<const T extends string, F extends T | undefined = undefined>(
  flags: string,
  description: string,
  choices: readonly T[],
  fallback?: F,
): OptionOf<T | F> {
  return optionOf(new Option(flags, description).choices(choices).default(fallback));
}

export function repeated(flags: string, description: string): OptionOf<readonly string[]> {
  return parsed<readonly string[]>(flags, description, (one, earlier) => [...earlier, one], []);
}

/** An argument, whose name has the form `<one>`, `[one]`, `<several...>` or `[several...]`. */
export interface ArgumentOf<A> {
  readonly name: string;
  readonly description: string;
  readonly read: (value: unknown) => A;
}

export function required<A = string>(
  name: string,
  description = '',
  parse = (text: string) => text as A,
): ArgumentOf<A> {
  return { name, description, read: (value) => parse(String(value)) };
}

export function optional(name: string, description: string): ArgumentOf<string | undefined> {
  return { name, description, read: (value) => value as string | undefined };
}

export function several(name: string, description: string): ArgumentOf<readonly string[]> {
  return { name, description, read: (value) => value as readonly string[] };
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * Returns a parser of ids. Without a query, the parser refuses text that cannot be an id. @throws
 * UsageError
 */
export function parseIdOf(what: string, list: string): (text: string) => string {
  return (text) => {
    if (uuid.test(text)) return text.toLowerCase();
    throw new UsageError(`${JSON.stringify(text)} is not a ${what} id; \`sluice ${list}\` shows them.`);
  };
}

export const jobIdArgument = required('<job-id>', '', parseIdOf('job', 'jobs list'));

export function parseCount(text: string): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(number) && number > 0) return number;
  throw new InvalidArgumentError('write a whole number above 0.');
}

export function parseUpTo(max: number): (text: string) => number {
  return (text) => {
    if (/^\d{1,9}$/.test(text) && Number(text) <= max) return Number(text);
    throw new InvalidArgumentError(`write a whole number from 0 to ${max}.`);
  };
}

export const limitOption = (fallback: number, description = 'how many') =>
  parsed('--limit <n>', description, parseCount, fallback);

export const listenOptions = {
  port: text('--port <number>', 'port to listen on; 0 takes any free one (PORT)'),
  host: text('--host <address>', 'address to listen on; 0.0.0.0 for all (HOST)'),
} as const;

export function parseListOf<const T extends string>(
  allowed: readonly T[],
  complaint = `one or more of ${allowed.join(', ')}.`,
): (text: string) => T[] {
  return (text) =>
    text.split(',').map((part) => {
      const match = allowed.find((item) => item === part.trim());
      if (match === undefined) throw new InvalidArgumentError(complaint);
      return match;
    });
}

const unitMs = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Reads a time relative to now (`30m`, `12h`, `90d`), or a date, which means midnight UTC. */
function parseTime(text: string, direction: 1 | -1, complaint: string): Date {
  const match = /^(\d{1,6})([mhd])$/.exec(text);
  if (match !== null)
    return new Date(Date.now() + direction * Number(match[1]) * unitMs[match[2] as keyof typeof unitMs]);
  const date = new Date(text);
  if (/^\d{4}-\d{2}-\d{2}/.test(text) && !Number.isNaN(date.getTime())) return date;
  throw new InvalidArgumentError(complaint);
}

export function parseExpiry(text: string): Date {
  return parseTime(text, 1, 'write a time from now such as 90d or 12h, or a date such as 2027-01-31.');
}

export function parseSince(text: string): Date {
  return parseTime(text, -1, 'write how long ago, such as 24h or 7d, or a date such as 2027-01-31.');
}
