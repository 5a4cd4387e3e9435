import { MAX_MAPPED_COLUMNS, MAX_SHEET_NAME_CHARS } from '../base/limits.ts';
import { cellTypes, readCellType } from './data-type.ts';
import { parseRecordsPath, type SourceOptions } from './source.ts';
import {
  action,
  count,
  isLine,
  type OptionSeam,
  readNumber,
  type SourceOption,
  type SourceProblem,
} from './source-option.ts';

const maxDelimiterChars = 8;
const maxCommentChars = 8;
const maxNullTokens = 20;
const maxNullChars = 100;
const maxRecordsPathChars = 1_000;
const maxHeaderRecord = 10_000;
const maxHeaderRows = 9;
const maxSkippedLines = 1_000_000;
/** Maximum number of records in the footer. The positions of these records are kept in memory. */
const maxFooterRecords = 1_000;

const delimiterWords: Readonly<Record<string, string>> = {
  comma: ',',
  semicolon: ';',
  tab: '\t',
  pipe: '|',
  space: ' ',
  blanks: 'blanks',
};

const options = {
  encoding: {
    formats: ['csv', 'ndjson', 'json'],
    type: 'string',
    argument: 'name',
    description: 'character encoding, by its name in the WHATWG Encoding Standard',
    rule: 'must be the name of an encoding, such as utf-8, windows-1252 or utf-16le',
    examples: ['windows-1252'],
    read: readEncoding,
  },
  delimiter: {
    formats: ['csv'],
    type: 'string',
    argument: 'characters',
    description:
      'delimiter of a CSV: one or more characters, or comma, semicolon, tab, pipe or space, or blanks for any number of spaces and tabs',
    rule: `must be ${Object.keys(delimiterWords).join(', ')}, or 1 to ${maxDelimiterChars} characters without letters, digits, double quotes and line ends`,
    examples: [';', 'tab'],
    read: readDelimiter,
  },
  quote: {
    formats: ['csv'],
    type: 'string',
    argument: 'character',
    description: 'quote character of a CSV. none: quotes have no meaning',
    rule: 'must be none, or one ASCII character that is no letter, digit or blank',
    examples: ["'", 'none'],
    read: readQuote,
  },
  escape: {
    formats: ['csv'],
    type: 'string',
    argument: 'character',
    description:
      'character that escapes a quote: a backslash, or the quote character itself, doubled. none: quotes cannot be escaped',
    rule: 'must be none, a backslash, or the quote character',
    examples: ['\\', 'none'],
    read: readQuote,
  },
  header: {
    fileTypes: ['string', 'integer'],
    formats: ['csv', 'xlsx'],
    type: 'string',
    argument: 'which',
    description:
      'number of the record that names the columns, from 1, after skipped lines. none: no record does, and the columns are column_1, column_2, …',
    rule: `must be none, or a number from 1 to ${maxHeaderRecord}`,
    examples: ['none', '3'],
    read: (text) => (text === 'none' ? 'none' : readNumber(text, [1, maxHeaderRecord])),
  },
  header_rows: {
    ...count([1, maxHeaderRows], 'number of records in the header. The names in a column are joined', 2),
    formats: ['csv', 'xlsx'],
  },
  skip_rows: {
    ...count([0, maxSkippedLines], 'number of lines to skip at the start', 4),
    formats: ['csv', 'xlsx'],
  },
  skip_footer: {
    ...count([0, maxFooterRecords], 'number of records to skip at the end', 1),
    formats: ['csv', 'xlsx'],
  },
  comment: {
    formats: ['csv'],
    type: 'string',
    argument: 'characters',
    description: 'prefix of comment lines. none: there are no comments',
    rule: `must be none, or 1 to ${maxCommentChars} characters without control characters, the first of them no blank`,
    examples: ['#'],
    read: readComment,
  },
  null: {
    fileTypes: ['string', 'array'],
    formats: ['csv', 'xlsx'],
    type: 'array',
    max: maxNullTokens,
    argument: 'text',
    description: 'unquoted cell that means the same as an empty one. May be given several times',
    rule: `must be a text of 1 to ${maxNullChars} characters without control characters, at most ${maxNullTokens} of them`,
    examples: [['NULL', '\\N']],
    read: (text) => (isLine(text, maxNullChars) ? text : undefined),
  },
  types: {
    fileTypes: ['string', 'array'],
    formats: ['csv', 'xlsx'],
    type: 'array',
    max: MAX_MAPPED_COLUMNS,
    argument: 'column=type',
    description: `type of the values in a column of a CSV: ${cellTypes.join(', ')}. Without one they are texts. May be given several times`,
    rule: `must be a column, = and ${cellTypes.slice(0, -1).join(', ')} or ${cellTypes.at(-1)}, at most ${MAX_MAPPED_COLUMNS} of them`,
    examples: [['Seats=number', 'Signed up=day_first']],
    read: (text) => (readCellType(text) === undefined ? undefined : text),
  },
  ragged: {
    ...action(
      ['refuse', 'pad'],
      'treatment of records with fewer cells than the header: refuse them, or pad them with empty cells',
      'pad',
    ),
    formats: ['csv', 'xlsx'],
  },
  apostrophes: {
    ...action(
      ['remove', 'keep'],
      'treatment of an apostrophe before a cell that a spreadsheet would run as a formula. By default it is removed from files with the columns of an export',
      'remove',
    ),
    formats: ['csv'],
  },
  sheet: {
    formats: ['xlsx'],
    type: 'string',
    argument: 'name',
    description: 'sheet of a workbook, by name or by number from 1. Default: the first with data',
    rule: 'must be the name or number of a sheet',
    examples: ['Customers'],
    read: (text) => (isLine(text, MAX_SHEET_NAME_CHARS) ? text : undefined),
  },
  records: {
    formats: ['json'],
    type: 'string',
    argument: 'path',
    description: 'path of the array of records in a JSON document: keys separated by dots',
    rule: 'must be keys with dots between, such as data.users',
    examples: ['data.users'],
    read: (text) => (isLine(text, maxRecordsPathChars) && parseRecordsPath(text) !== null ? text : undefined),
  },
  existing: action(
    ['replace', 'keep'],
    'treatment of values that a profile has already: replace them, or keep them and add only what is missing. With keep, the first record of a key in the file wins, and null removes nothing',
    'keep',
  ),
} as const satisfies Readonly<Record<string, SourceOption>>;

export const coreOptions: OptionSeam = { options, contradictions };

function contradictions({
  quote,
  comment = '',
  header,
  headerRows,
  ...source
}: SourceOptions): SourceProblem[] {
  const delimiter = source.delimiter === 'blanks' ? ' ' : (source.delimiter ?? '');
  const isPart = (mark: string) => mark !== '' && delimiter.includes(mark);
  const startsWith = (mark: string) => mark !== '' && comment.startsWith(mark);
  const checks: readonly (readonly [isWrong: boolean, name: string, what: string])[] = [
    [isPart(quote ?? ''), 'quote', 'is part of the delimiter'],
    [source.escape === '\\' && isPart('\\'), 'escape', 'is part of the delimiter'],
    [
      !['', '\\', quote ?? ''].includes(source.escape ?? ''),
      'escape',
      `must be ${
        quote === '' ? 'none or a backslash, as quote is none' : `none, a backslash or ${quote}, as quote is`
      }`,
    ],
    [startsWith(delimiter), 'comment', 'starts with the delimiter'],
    [startsWith(quote ?? '"'), 'comment', 'starts with the quote character'],
    [header === 'none' && headerRows !== undefined, 'header_rows', 'has no effect where header is none'],
  ];
  return checks.filter(([isWrong]) => isWrong).map(([, name, what]) => ({ name, what }));
}

function readEncoding(label: string): string | undefined {
  try {
    return new TextDecoder(label).encoding;
  } catch {
    return undefined;
  }
}

/** Hard-to-type characters may be written as `\t` or `\x01`. */
function readDelimiter(text: string): string | undefined {
  const word = Object.hasOwn(delimiterWords, text) ? delimiterWords[text] : undefined;
  if (word !== undefined) return word;
  const characters = text
    .replaceAll('\\t', '\t')
    .replace(/\\x([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
  const length = Array.from(characters).length;
  const isAllowed = length > 0 && length <= maxDelimiterChars && characters.isWellFormed();
  return isAllowed && !/[a-z0-9"\r\n\0\ufeff]/i.test(characters) ? characters : undefined;
}

function readQuote(text: string): string | undefined {
  if (text === 'none') return '';
  return /^[!-/:-@[-`{-~]$/.test(text) ? text : undefined;
}

function readComment(text: string): string | undefined {
  if (text === 'none') return '';
  return isLine(text, maxCommentChars) && !/^\s/.test(text) ? text : undefined;
}
