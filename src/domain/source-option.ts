import type { SourceFormat, SourceOptions } from './source.ts';

/** An option of loads, the same in every interface. */
export interface SourceOption {
  readonly type: 'string' | 'integer' | 'boolean' | 'array';
  readonly range?: readonly [least: number, most: number];
  readonly choices?: readonly string[];
  readonly argument: string;
  /** Sentence without full stop. */
  readonly description: string;
  /** End of a sentence that begins with the option's name. */
  readonly rule: string;
  readonly examples: readonly (string | number | boolean | readonly string[])[];
  readonly most?: number;
  /** Reads a value, or an item of a list. Returns `undefined` if it breaks the rule. */
  readonly read: (text: string) => string | number | boolean | undefined;
  /** Default: all formats. */
  readonly formats?: readonly SourceFormat[];
  /** JSON types in an operator's file. Default: `type`. */
  readonly fileTypes?: readonly string[];
  /** Option without which this one has no effect. `options_of` may provide it. */
  readonly needs?: string;
  /** True for an option of a single file, which `options_of` omits. */
  readonly isOfOneFile?: boolean;
}

/** Options of a capability. `SourceOptions` has their names in camel case. */
export interface OptionSeam {
  readonly options: Readonly<Record<string, SourceOption>>;
  /** Also called without the options of a form or of `options_of`, which must not matter. */
  contradictions?(source: SourceOptions): readonly SourceProblem[];
}

export interface SourceProblem {
  readonly name: string;
  /** End of a sentence that begins with the name. */
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

function readFlag(text: string): boolean | undefined {
  return text === 'true' || text === 'false' ? text === 'true' : undefined;
}

export function readNumber(text: string, [least, most]: readonly [number, number]): number | undefined {
  const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  return number >= least && number <= most ? number : undefined;
}

/** Returns true for a text of one line. */
export function isLine(text: string, maxChars: number): boolean {
  const length = Array.from(text).length;
  return length > 0 && length <= maxChars && text.isWellFormed() && !/\p{Cc}/u.test(text);
}
