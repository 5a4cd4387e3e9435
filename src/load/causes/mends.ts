import { isUtf8 } from 'node:buffer';
import { undoDefuse } from '../../domain/formula.ts';
import { MAX_STRAY_QUOTES } from '../../domain/limits.ts';
import { isNullWord, type RejectCode } from '../../domain/reject.ts';
import { isObject, parseJsonText } from '../../formats/json-text.ts';
import { isWestern, TextReader } from '../../formats/text-encoding.ts';
import {
  readDayFirst,
  readMonthFirst,
  readNamedMonth,
  readYearFirst,
  type TimeReading,
} from '../../mapping/written-times.ts';
import type { RefusedCsv } from '../rejects-text.ts';
import { likelyKind } from './reject-causes.ts';

/**
 * A way to make refused records acceptable. It says what a record was meant to be, and nothing of whether a load would take that:
 * the loader is asked. Null from any of its functions: the record is not one that it mends.
 */
export interface Mend {
  /** Stable: it is part of the id of a proposal. */
  readonly name: string;
  /** The effect in words, after the pattern `read as day first`. */
  readonly sentence: string;
  readonly codes: readonly RejectCode[];
  /** The column that it is about, instead of the one at fault. */
  readonly column?: string;
  /** The value in the column at fault; empty: there is none. */
  readonly value?: (text: string) => string | null;
  /** The same, of JSON, where it is no text. */
  readonly json?: (value: unknown) => unknown;
  /** The cells of a record of CSV, as they are meant. `row`: its number. */
  readonly cells?: (raw: Buffer, records: RefusedCsv, row: number) => readonly string[] | null;
  /** The bytes of a record of either, as text. */
  readonly bytes?: (raw: Buffer) => string | null;
}

/** White space, and characters that nobody sees. */
const unseen = /[\s\u200b-\u200f\u2060\ufeff]/;

/** Removes hidden characters at both ends, from the outside in: an expression that ends with `+$` would start again at every blank inside. */
function trimUnseen(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && unseen.test(text.charAt(start))) start++;
  while (start < end && unseen.test(text.charAt(end - 1))) end--;
  return text.slice(start, end);
}

const mendsOfWords: readonly Mend[] = [
  {
    name: 'trim',
    sentence: 'read without the blanks around it',
    codes: ['invalid_date', 'unknown_event_type', 'unexpected_event_row'],
    value: (text) => {
      const trimmed = trimUnseen(text);
      return trimmed === text || trimmed === '' ? null : trimmed;
    },
  },
  {
    name: 'no-value',
    sentence: 'read as no value',
    codes: ['invalid_date', 'invalid_type', 'invalid_json'],
    value: (text) => (isNullWord(text) || (text !== '' && text.trim() === '') ? '' : null),
    json: (value) => (value === '' ? null : undefined),
  },
  {
    name: 'json-in-text',
    sentence: 'read as the object that stands in the text',
    codes: ['invalid_type'],
    json(value) {
      const parsed = typeof value === 'string' ? parseJsonText(value) : null;
      return parsed !== null && 'value' in parsed && isObject(parsed.value) ? parsed.value : undefined;
    },
  },
  {
    name: 'known-kind',
    sentence: 'read as the kind of record of that name',
    codes: ['unknown_event_type', 'unexpected_event_row'],
    value: (text) => {
      const kind = likelyKind(text);
      return kind === text ? null : kind;
    },
  },
  {
    name: 'apostrophes-removed',
    sentence: 'read without the apostrophes before formulas',
    codes: ['unclear_apostrophe'],
    cells: (raw, records) => records.texts(raw)?.map(undoDefuse) ?? null,
  },
  {
    name: 'apostrophes-kept',
    sentence: 'read with the apostrophes before formulas as part of the values',
    codes: ['unclear_apostrophe'],
    cells: (raw, records) => records.texts(raw),
  },
  {
    name: 'no-nul',
    sentence: 'read without the characters U+0000 in it',
    codes: ['nul_character'],
    json: (value) =>
      typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '') : undefined,
    bytes: (raw) => (raw.includes(0) ? raw.toString('utf8').replaceAll('\0', '') : null),
  },
];

/** A character of UTF-8 beyond ASCII, in a byte string. */
const utf8Character = /[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}/;

/** Reads bytes that are not UTF-8 in windows-1252, if they can be nothing else; for another encoding the file is sent again. */
const mendOfEncoding: Mend = {
  name: 'windows-1252',
  sentence: 'read in windows-1252',
  codes: ['invalid_utf8'],
  bytes(raw) {
    // Text that is partly UTF-8 was written by two programs, so either reading would be wrong.
    if (isUtf8(raw) || utf8Character.test(raw.toString('latin1')) || !isWestern(raw)) return null;
    return new TextReader('windows-1252').read(raw);
  },
};

/** Readings of a time: the name and sentence of the mend, and what returns the time as ISO 8601 has it. */
const timeReadings: readonly (readonly [name: string, sentence: string, read: TimeReading])[] = [
  ['day-first', 'read as day first', readDayFirst],
  ['month-first', 'read as month first', readMonthFirst],
  ['year-first', 'read as year, month and day', readYearFirst],
  ['month-name', 'read with the name of the month', readNamedMonth],
  [
    'decimal-comma',
    'read with a decimal comma',
    (text) => (/^\s*\d{9,14},\d{1,9}\s*$/.test(text) ? text.trim().replace(',', '.') : null),
  ],
];

const mendsOfDates = timeReadings.map(
  ([name, sentence, read]): Mend => ({ name, sentence, codes: ['invalid_date'], value: read }),
);

/* Records of CSV whose cells do not come out as many as the columns. Of each reading they must, exactly. */

const QUOTE = '"';
/** In the order of how common they are. */
const delimiters = { semicolon: ';', tab: '\t', pipe: '|', comma: ',' } as const;

const mendsOfDelimiters = Object.entries(delimiters).map(
  ([name, delimiter]): Mend => ({
    name: `${name}-delimiter`,
    sentence: `read with a ${name} between the cells`,
    codes: ['wrong_field_count', 'invalid_quote', 'unclosed_quote'],
    cells: (raw, records) => {
      const { header, dialect } = records;
      const { length } = header.columns;
      if (length < 2 || dialect.delimiter === delimiter) return null;
      return records.allCells(raw)?.length === length ? null : records.as(raw, { delimiter });
    },
  }),
);

/**
 * The cells of a line in which quotes may be part of a cell: one that begins with a quote ends with the first that stands before a
 * delimiter; any other is taken as it is. Null where a backslash or a doubled quote leaves in doubt what is meant.
 */
function readInnerQuotes(line: string, delimiter: string): string[] | null {
  if (/\\"|""|[\r\n]/.test(line.replaceAll(`${delimiter}""${delimiter}`, `${delimiter}${delimiter}`)))
    return null;
  const cells: string[] = [];
  for (let at = 0; ; ) {
    const close = line[at] === QUOTE ? closingQuote(line, at + 1, delimiter) : -1;
    if (close >= 0) {
      cells.push(line.slice(at + 1, close));
      at = close + 1;
    } else {
      const end = line.indexOf(delimiter, at);
      cells.push(line.slice(at, end === -1 ? line.length : end));
      at = end === -1 ? line.length : end;
    }
    if (at >= line.length) return cells;
    at++;
  }
}

function closingQuote(line: string, from: number, delimiter: string): number {
  if (line.endsWith(QUOTE) && line.indexOf(QUOTE, from) === line.length - 1) return line.length - 1;
  const at = line.indexOf(QUOTE + delimiter, from);
  return at === -1 && line.endsWith(QUOTE) && line.length > from ? line.length - 1 : at;
}

function innerQuotes(raw: Buffer, { header, dialect }: RefusedCsv): readonly string[] | null {
  const { delimiter, quote, escape: escapes } = dialect;
  if (quote !== QUOTE || escapes !== QUOTE || delimiter.length !== 1) return null;
  const line = raw.toString('utf8');
  const quotes = line.split(QUOTE, 2 * MAX_STRAY_QUOTES + 2).length - 1;
  if (quotes > 2 * MAX_STRAY_QUOTES) return null;
  const cells = readInnerQuotes(line, delimiter);
  return cells?.length === header.columns.length ? cells : null;
}

/** Joins digits, a comma that is the delimiter too, and digits: in exactly as many places as there are cells too many. */
function joinDecimals(raw: Buffer, records: RefusedCsv): readonly string[] | null {
  const { header, dialect } = records;
  const cells = dialect.delimiter === ',' ? records.allCells(raw) : null;
  if (cells === null || cells.length <= header.columns.length) return null;
  const joined: string[] = [];
  for (const [at, cell] of cells.entries()) {
    const isRest = /^\d+$/.test(cell) && /^-?\d+$/.test(cells[at - 1] ?? '');
    joined.push(isRest ? `${joined.pop() ?? ''}.${cell}` : cell);
  }
  return joined.length === header.columns.length ? joined : null;
}

const mendsOfCsv: readonly Mend[] = [
  ...mendsOfDelimiters,
  {
    name: 'joined-decimals',
    sentence: 'read with a decimal comma in it',
    codes: ['wrong_field_count'],
    cells: joinDecimals,
  },
  {
    name: 'single-quotes',
    sentence: 'read with single quotes around cells',
    codes: ['wrong_field_count', 'invalid_quote', 'unclosed_quote'],
    cells: (raw, records) => (raw.includes("'") ? records.as(raw, { quote: "'", escape: "'" }) : null),
  },
  {
    name: 'backslash-quotes',
    sentence: 'read with a backslash before quotes that are part of a value',
    codes: ['invalid_quote', 'unclosed_quote', 'wrong_field_count'],
    cells: (raw, records) => (raw.includes('\\"') ? records.as(raw, { quote: QUOTE, escape: '\\' }) : null),
  },
  {
    name: 'inner-quotes',
    sentence: 'read with the quotes inside cells as part of the values',
    codes: ['invalid_quote', 'unclosed_quote'],
    cells: innerQuotes,
  },
];

/**
 * All mends there are. What is missing from a record (an id that nobody wrote) or is too much of it (too deep, too long) is not
 * mended, nor is what the database refuses.
 */
export const mends: readonly Mend[] = [...mendsOfWords, ...mendsOfDates, ...mendsOfCsv, mendOfEncoding];

export function mendsOf(code: RejectCode): readonly Mend[] {
  return mends.filter((mend) => mend.codes.includes(code));
}
