import { MAX_MAPPED_COLUMNS, MAX_SHEET_NAME_CHARS } from '../base/limits.ts';
import { capitalise } from '../base/wording.ts';
import { cellTypes, readCellType } from './cell-type.ts';
import { guardPattern, guardRule } from './guards.ts';
import { parseRecordsPath, type SourceOptions } from './source.ts';

/*
 * The written form of `SourceOptions`: the same names, values and sentences in the query and the form of an upload, in
 * in files of the operator, and as flags of the command line. Each of these makes its own schema of this table.
 */

const maxDelimiterChars = 8;
const maxCommentChars = 8;
const maxNullTokens = 20;
const maxNullChars = 100;
const maxRecordsPathChars = 1_000;
const maxGroupChars = 200;
const maxHeaderRecord = 10_000;
const maxHeaderRows = 9;
const maxSkippedLines = 1_000_000;
/** Records at the end of a file that `skip_footer` may pass over: their places are held until the end has come. */
const maxFooterRecords = 1_000;

export interface SourceOption {
  readonly type: 'string' | 'integer' | 'boolean' | 'array';
  readonly range?: readonly [least: number, most: number];
  readonly choices?: readonly string[];
  readonly argument: string;
  /** A sentence without the full stop. */
  readonly description: string;
  /** Goes on from the name of the option. */
  readonly rule: string;
  readonly examples: readonly (string | number | boolean | readonly string[])[];
  /** The most items of a list. */
  readonly most?: number;
  /** Reads the value, of a list one item, from text; returns `undefined` if it breaks the rule. */
  readonly read: (text: string) => string | number | boolean | undefined;
}

const delimiterWords: Readonly<Record<string, string>> = {
  comma: ',',
  semicolon: ';',
  tab: '\t',
  pipe: '|',
  space: ' ',
  blanks: 'blanks',
};

function count(range: readonly [number, number], description: string, example: number) {
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

function flag(description: string) {
  return {
    type: 'boolean',
    argument: '',
    description,
    rule: 'must be true or false',
    examples: [true],
    read: readFlag,
  } satisfies SourceOption;
}

function action(choices: readonly [string, string], description: string, example: string) {
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

export const sourceOptions = {
  encoding: {
    type: 'string',
    argument: 'name',
    description: 'character encoding, by its name in the WHATWG Encoding Standard',
    rule: 'must be the name of an encoding, such as utf-8, windows-1252 or utf-16le',
    examples: ['windows-1252'],
    read: readEncoding,
  },
  delimiter: {
    type: 'string',
    argument: 'characters',
    description:
      'delimiter of a CSV: one or more characters, or comma, semicolon, tab, pipe or space, or blanks for any number of spaces and tabs',
    rule: `must be ${Object.keys(delimiterWords).join(', ')}, or 1 to ${maxDelimiterChars} characters without letters, digits, double quotes and line ends`,
    examples: [';', 'tab'],
    read: readDelimiter,
  },
  quote: {
    type: 'string',
    argument: 'character',
    description: 'quote character of a CSV. none: quotes have no meaning',
    rule: 'must be none, or one ASCII character that is no letter, digit or blank',
    examples: ["'", 'none'],
    read: readQuote,
  },
  escape: {
    type: 'string',
    argument: 'character',
    description:
      'character that escapes a quote: a backslash, or the quote character itself, doubled. none: quotes cannot be escaped',
    rule: 'must be none, a backslash, or the quote character',
    examples: ['\\', 'none'],
    read: readQuote,
  },
  header: {
    type: 'string',
    argument: 'which',
    description:
      'number of the record that names the columns, from 1, after skipped lines. none: no record does, and the columns are column_1, column_2, …',
    rule: `must be none, or a number from 1 to ${maxHeaderRecord}`,
    examples: ['none', '3'],
    read: (text) => (text === 'none' ? 'none' : readNumber(text, [1, maxHeaderRecord])),
  },
  header_rows: count(
    [1, maxHeaderRows],
    'number of records in the header. The names in a column are joined',
    2,
  ),
  skip_rows: count([0, maxSkippedLines], 'number of lines to skip at the start', 4),
  skip_footer: count([0, maxFooterRecords], 'number of records to skip at the end', 1),
  comment: {
    type: 'string',
    argument: 'characters',
    description: 'prefix of comment lines. none: there are no comments',
    rule: `must be none, or 1 to ${maxCommentChars} characters without control characters, the first of them no blank`,
    examples: ['#'],
    read: readComment,
  },
  null: {
    type: 'array',
    most: maxNullTokens,
    argument: 'text',
    description: 'unquoted cell that means the same as an empty one. May be given several times',
    rule: `must be a text of 1 to ${maxNullChars} characters without control characters, at most ${maxNullTokens} of them`,
    examples: [['NULL', '\\N']],
    read: (text) => (isLine(text, maxNullChars) ? text : undefined),
  },
  types: {
    type: 'array',
    most: MAX_MAPPED_COLUMNS,
    argument: 'column=type',
    description: `type of the values in a column of a CSV: ${cellTypes.join(', ')}. Without one they are texts. May be given several times`,
    rule: `must be a column, = and ${cellTypes.slice(0, -1).join(', ')} or ${cellTypes.at(-1)}, at most ${MAX_MAPPED_COLUMNS} of them`,
    examples: [['Seats=number', 'Signed up=day_first']],
    read: (text) => (readCellType(text) === undefined ? undefined : text),
  },
  ragged: action(
    ['refuse', 'pad'],
    'treatment of records with fewer cells than the header: refuse them, or pad them with empty cells',
    'pad',
  ),
  apostrophes: action(
    ['remove', 'keep'],
    'treatment of an apostrophe before a cell that a spreadsheet would run as a formula. By default it is removed from files with the columns of an export',
    'remove',
  ),
  sheet: {
    type: 'string',
    argument: 'name',
    description: 'sheet of a workbook, by name or by number from 1. Default: the first with data',
    rule: 'must be the name or number of a sheet',
    examples: ['Customers'],
    read: (text) => (isLine(text, MAX_SHEET_NAME_CHARS) ? text : undefined),
  },
  records: {
    type: 'string',
    argument: 'path',
    description: 'path of the array of records in a JSON document: keys separated by dots',
    rule: 'must be keys with dots between, such as data.users',
    examples: ['data.users'],
    read: (text) => (isLine(text, maxRecordsPathChars) && parseRecordsPath(text) !== null ? text : undefined),
  },
  company_from: {
    type: 'string',
    argument: 'group',
    description:
      'kind of group that is the company, in files of Mixpanel (a group key), Amplitude and PostHog. Default: company, organization or account, else the first of a record',
    rule: `must be the name of a kind of group, at most ${maxGroupChars} characters without control characters`,
    examples: ['project'],
    read: (text) => (isLine(text, maxGroupChars) ? text : undefined),
  },
  existing: action(
    ['replace', 'keep'],
    'treatment of values that a profile has already: replace them, or keep them and add only what is missing. With keep, the first record of a key in the file wins, and null removes nothing',
    'keep',
  ),
  mirror: {
    type: 'string',
    argument: 'action',
    description:
      'declares that the file holds all users (or companies). Those that it does not hold are removed once it is loaded',
    choices: ['remove'],
    rule: 'must be remove. To mark profiles instead of removing them, load a file with a column of marks',
    examples: ['remove'],
    read: (text) => (text === 'remove' ? text : undefined),
  },
  max_removed: {
    type: 'string',
    argument: 'limit',
    description:
      'most profiles that a mirror may remove: a number, or a share of those that are stored. If more are missing from the file, all stay. Default: 5%',
    rule: guardRule,
    examples: ['5%', '200'],
    read: (text) => (new RegExp(guardPattern).test(text) ? text : undefined),
  },
  mirror_despite_rejects: flag(
    'lets a mirror act although records of the file were refused. Profiles that only refused records name count as missing',
  ),
} as const satisfies Readonly<Record<string, SourceOption>>;

export type SourceOptionName = keyof typeof sourceOptions;
export const sourceOptionNames = Object.keys(sourceOptions) as SourceOptionName[];

export function keyOf(name: SourceOptionName): keyof SourceOptions {
  const key = name === 'null' ? 'nulls' : name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  return key as keyof SourceOptions;
}

export function schemaOfSourceOption(name: SourceOptionName) {
  const { type, range, choices, description, examples }: SourceOption = sourceOptions[name];
  return {
    type,
    ...(range !== undefined && { minimum: range[0], maximum: range[1] }),
    ...(type === 'array' && { items: { type: 'string' } }),
    ...(choices !== undefined && { enum: choices }),
    description: `${capitalise(description)}.`,
    examples,
  };
}

/** Options as a caller writes them; other names are ignored. */
export type GivenSource = Readonly<Partial<Record<SourceOptionName, unknown>>>;

/** Returns the rule that a value breaks, as it goes on from the name of the option; `null` if it breaks none. */
export function sourceOptionProblem(name: SourceOptionName, value: unknown): string | null {
  const { read, type, rule, most = 1 }: SourceOption = sourceOptions[name];
  const items = type === 'array' ? itemsOf(value) : [value];
  if (items.length > most) return rule;
  return items.every((item) => isWritten(item) && read(String(item)) !== undefined) ? null : rule;
}

function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [value];
}

function isWritten(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

/** Reads options whose values are all valid. Those that are left out or switched off are absent. */
export function toSourceOptions(given: GivenSource): SourceOptions {
  const entries = sourceOptionNames.flatMap((name): [string, unknown][] => {
    const value = given[name];
    const { type, read }: SourceOption = sourceOptions[name];
    if (value === undefined || value === null) return [];
    const items = itemsOf(value).map((item) => read(String(item)));
    const meant = type === 'array' ? [...new Set(items)] : items[0];
    return meant === undefined || meant === false || items.length === 0 ? [] : [[keyOf(name), meant]];
  });
  const options = Object.fromEntries(entries) as SourceOptions;
  // Who names a quote character as what doubles it has named the quote character.
  const { quote, escape: mark = '' } = options;
  return quote !== undefined || mark === '' || mark === '\\' ? options : { ...options, quote: mark };
}

export function toGivenSource(options: SourceOptions): GivenSource {
  const entries = sourceOptionNames.flatMap((name): [SourceOptionName, unknown][] => {
    const value = options[keyOf(name)];
    return value === undefined ? [] : [[name, value === '' ? 'none' : value]];
  });
  return Object.fromEntries(entries);
}

function readFlag(given: string): boolean | undefined {
  return given === 'true' || given === 'false' ? given === 'true' : undefined;
}

function readNumber(given: string, [least, most]: readonly [number, number]): number | undefined {
  const number = /^\d{1,9}$/.test(given) ? Number(given) : Number.NaN;
  return number >= least && number <= most ? number : undefined;
}

function readEncoding(label: string): string | undefined {
  try {
    return new TextDecoder(label).encoding;
  } catch {
    return undefined;
  }
}

/** `\t` and `\x01` stand for characters that are hard to type. */
function readDelimiter(given: string): string | undefined {
  const word = Object.hasOwn(delimiterWords, given) ? delimiterWords[given] : undefined;
  if (word !== undefined) return word;
  const characters = given
    .replaceAll('\\t', '\t')
    .replace(/\\x([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
  const length = Array.from(characters).length;
  const isTaken = length > 0 && length <= maxDelimiterChars && characters.isWellFormed();
  return isTaken && !/[a-z0-9"\r\n\0\ufeff]/i.test(characters) ? characters : undefined;
}

function readQuote(given: string): string | undefined {
  if (given === 'none') return '';
  return /^[!-/:-@[-`{-~]$/.test(given) ? given : undefined;
}

function readComment(given: string): string | undefined {
  if (given === 'none') return '';
  return isLine(given, maxCommentChars) && !/^\s/.test(given) ? given : undefined;
}

function isLine(given: string, maxChars: number): boolean {
  const length = Array.from(given).length;
  return length > 0 && length <= maxChars && given.isWellFormed() && !/\p{Cc}/u.test(given);
}
