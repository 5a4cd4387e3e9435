/** How the options and the arguments of commands are written, what they hold, and its type. */
import { InvalidArgumentError, Option } from 'commander';
import { UsageError } from './errors.ts';

/** An option and the type of what it gives. */
export interface OptionOf<T> {
  readonly option: Option;
  readonly read: (given: unknown) => T;
}

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

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Throws `UsageError` for what cannot be the id of one, before the database is asked. */
export function parseIdOf(what: string, list: string): (text: string) => string {
  return (text) => {
    if (uuid.test(text)) return text.toLowerCase();
    throw new UsageError(`${JSON.stringify(text)} is not a ${what} id; \`sluice ${list}\` shows them.`);
  };
}

export const parseJobId = parseIdOf('job', 'jobs list');

export function parseCount(text: string): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(number) && number > 0) return number;
  throw new InvalidArgumentError('write a whole number above 0.');
}

/** `ingest,read` */
export function parseListOf<const T extends string>(
  allowed: readonly T[],
  complaint = `one or more of ${allowed.join(', ')}.`,
): (text: string) => T[] {
  return (text) =>
    text.split(',').map((part) => {
      const found = allowed.find((item) => item === part.trim());
      if (found === undefined) throw new InvalidArgumentError(complaint);
      return found;
    });
}

const unitMs = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** `30m`, `12h`, `90d` before or after now; or a date such as 2027-01-31, which begins at midnight UTC. */
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
