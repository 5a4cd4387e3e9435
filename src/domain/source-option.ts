import type { SourceFormat, SourceOptions } from './source.ts';

/**
 * An option that describes the source of a load. Parameters, flags and form fields are derived from
 * it.
 */
export interface SourceOption {
  readonly type: 'string' | 'integer' | 'boolean' | 'array';
  readonly range?: readonly [min: number, max: number];
  readonly choices?: readonly string[];
  readonly argument: string;
  /** Description of the option: a sentence without a full stop. */
  readonly description: string;
  /** Text such as `must be true or false`, which follows the option's name in a message. */
  readonly rule: string;
  readonly examples: readonly (string | number | boolean | readonly string[])[];
  readonly max?: number;
  /** Reads a value, or each item of a list. `undefined` if it violates `rule`. */
  readonly read: (text: string) => string | number | boolean | undefined;
  /** Default: all. */
  readonly formats?: readonly SourceFormat[];
  /** JSON types in an operator's file. Default: `type`. */
  readonly fileTypes?: readonly string[];
  /** Option without which this one has no effect. `options_of` can provide it. */
  readonly needs?: string;
  /** True if `options_of` does not reuse the option. */
  readonly isOfOneFile?: boolean;
}

/** Options that one part of sluice adds. In `SourceOptions`, their names are in camel case. */
export interface OptionSeam {
  readonly options: Readonly<Record<string, SourceOption>>;
  /** A missing option is not a contradiction: a form or `options_of` may add it. */
  contradictions?(source: SourceOptions): readonly SourceProblem[];
}

export interface SourceProblem {
  readonly name: string;
  /** Text such as `has no effect without records`, which follows the name in a message. */
  readonly what: string;
}

export function count(range: readonly [number, number], description: string, example: number) {
  const [min, max] = range;
  return {
    type: 'integer',
    range,
    argument: 'n',
    description,
    rule: `must be a number from ${min} to ${max}`,
    examples: [example],
    read: (text) => readNumber(text, range),
  } satisfies SourceOption;
}

export function flag(description: string) {
  return {
    type: 'boolean',
    argument: '',
    description,
    rule: 'must be true or false',
    examples: [true],
    read: readFlag,
  } satisfies SourceOption;
}

export function action(choices: readonly [string, string], description: string, example: string) {
  return {
    type: 'string',
    choices,
    argument: 'action',
    description,
    rule: `must be ${choices.join(' or ')}`,
    examples: [example],
    read: (text) => choices.find((choice) => choice === text),
  } satisfies SourceOption;
}

function readFlag(text: string): boolean | undefined {
  return text === 'true' || text === 'false' ? text === 'true' : undefined;
}

export function readNumber(text: string, [min, max]: readonly [number, number]): number | undefined {
  const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  return number >= min && number <= max ? number : undefined;
}

export function isLine(text: string, maxChars: number): boolean {
  const length = Array.from(text).length;
  return length > 0 && length <= maxChars && text.isWellFormed() && !/\p{Cc}/u.test(text);
}
