import type { SourceFormat, SourceOptions } from './source.ts';

/** An option of loads, the same in every interface. */
export interface SourceOption {
  readonly type: 'string' | 'integer' | 'boolean' | 'array';
  readonly range?: readonly [least: number, most: number];
  readonly choices?: readonly string[];
  readonly argument: string;
  /** Sentence without full stop. */
  readonly description: string;
  /** Follows the option's name. */
  readonly rule: string;
  readonly examples: readonly (string | number | boolean | readonly string[])[];
  readonly most?: number;
  /** Reads the value, or an item of a list. Returns `undefined` if it breaks the rule. */
  readonly read: (text: string) => string | number | boolean | undefined;
  /** Default: all. */
  readonly formats?: readonly SourceFormat[];
  /** JSON types in an operator's file. Default: its own. */
  readonly fileTypes?: readonly string[];
  /** Name of the option without which it has no effect. `options_of` may bring that one. */
  readonly needs?: string;
  /** About one file, so `options_of` omits it. */
  readonly isOfOneFile?: boolean;
}

/** Options that capabilities add. `SourceOptions` has the names in camel case. */
export interface OptionSeam {
  readonly options: Readonly<Record<string, SourceOption>>;
  /** Is also called without the options of a form or of `options_of`: none of them may cure it. */
  contradictions?(source: SourceOptions): readonly SourceProblem[];
}

export interface SourceProblem {
  readonly name: string;
  /** Follows the name. */
  readonly what: string;
}

export function count(range: readonly [number, number], description: string, example: number) {
  const [least, most] = range;
  return {
    type: 'integer',
    range,
    argument: 'n',
    description,
    rule: `must be a number from ${least} to ${most}`,
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

function readFlag(given: string): boolean | undefined {
  return given === 'true' || given === 'false' ? given === 'true' : undefined;
}

export function readNumber(given: string, [least, most]: readonly [number, number]): number | undefined {
  const number = /^\d{1,9}$/.test(given) ? Number(given) : Number.NaN;
  return number >= least && number <= most ? number : undefined;
}

/** Text of one line. */
export function isLine(given: string, maxChars: number): boolean {
  const length = Array.from(given).length;
  return length > 0 && length <= maxChars && given.isWellFormed() && !/\p{Cc}/u.test(given);
}
