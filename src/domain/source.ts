import { inputError } from './errors.ts';
import { MAX_RECORDS_PATH } from './limits.ts';

/** The formats of uploaded files. */
export const sourceFormats = ['csv', 'ndjson', 'json', 'xlsx', 'parquet', 'avro'] as const;
export type SourceFormat = (typeof sourceFormats)[number];

/** The options of a file's format. Those left out are detected from its first MiB. */
export interface SourceOptions {
  /** A label of the WHATWG Encoding Standard, such as `windows-1252`. */
  readonly encoding?: string;
  /** The characters between the cells of a CSV; `blanks` for any number of blanks. */
  readonly delimiter?: string;
  /** An ASCII character; empty: quotes mean nothing. */
  readonly quote?: string;
  /** Escapes a quote: the quote itself (doubled) or a backslash; empty: nothing does. */
  readonly escape?: string;
  /** The record that names the columns, counted from 1 behind what is skipped; `none`: no record does. */
  readonly header?: 'none' | number;
  /** Records that the header is made of; 1 by default. */
  readonly headerRows?: number;
  /** Lines to be passed over at the start. */
  readonly skipRows?: number;
  /** Records to be passed over at the end. */
  readonly skipFooter?: number;
  /** A line that starts with this is no record. */
  readonly comment?: string;
  /** Cells without quotes that mean the same as an empty one. */
  readonly nulls?: readonly string[];
  /** Treats records with fewer or more cells than the header; `refuse` by default. */
  readonly ragged?: 'refuse' | 'pad';
  /** Treats records with a stray quote at the start of a cell; `refuse` by default. */
  readonly strayQuotes?: 'refuse' | 'keep';
  /** Refuses a header with columns that have no name, or the same. */
  readonly strictHeader?: boolean;
  /** Treats the apostrophe that exports put before a formula. */
  readonly apostrophes?: 'remove' | 'keep';
  /** The sheet of a workbook; the first with data by default. */
  readonly sheet?: string;
  /** The path to the records of a JSON document: keys with dots between. */
  readonly records?: string;
}

/** The format of a file as it was read, for the job record. */
export interface ReadAs {
  readonly format: SourceFormat;
  /** The lower-case name of the WHATWG Encoding Standard; `null` for a binary format. */
  readonly encoding: string | null;
  /** `null` unless the file is a CSV. */
  readonly csv: CsvReadAs | null;
  /** The sheet of a workbook. */
  readonly sheet: string | null;
  /** The one file in a ZIP archive. */
  readonly member: string | null;
  /** Sentences for a person, about renamed columns, skipped lines and the like. */
  readonly notes: readonly string[];
}

/** Named like the options. */
export interface CsvReadAs {
  readonly delimiter: string;
  readonly quote: string;
  readonly escape: string;
  readonly comment: string;
  readonly nulls: readonly string[];
  readonly ragged: 'refuse' | 'pad';
  /** Line of the file on which the header starts, from 1; null: there is none. */
  readonly headerLine: number | null;
  /** The first MAX_READ_AS_COLUMNS of `columnCount` column names, as `map` can name them. */
  readonly columns: readonly string[];
  readonly columnCount: number;
}

/** The only encodings that a message about a file may suggest. The console offers them. */
export const advisedEncodings = [
  'windows-1252',
  'windows-1250',
  'windows-1251',
  'windows-1253',
  'windows-1254',
  'windows-1255',
  'windows-1256',
  'windows-1257',
  'windows-874',
  'iso-8859-5',
  'koi8-r',
  'ibm866',
  'shift_jis',
  'euc-jp',
  'euc-kr',
  'gb18030',
  'big5',
] as const;
export type AdvisedEncoding = (typeof advisedEncodings)[number];

/** The keys and positions that lead to the array of records in a JSON document; empty: the document itself. */
export type RecordsPath = readonly string[];

/**
 * `data.users`: keys with dots between. A backslash makes an ordinary character of the dot or backslash after it. In an array,
 * the key is the position of an element, from 0. Null for what is no path.
 */
export function parseRecordsPath(text: string): RecordsPath | null {
  const keys: string[] = [];
  let key = '';
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at);
    if (character === '.') {
      keys.push(key);
      key = '';
    } else if (character !== '\\') key += character;
    else if (++at < text.length) key += text.charAt(at);
    else return null;
  }
  keys.push(key);
  return keys.includes('') || keys.length > MAX_RECORDS_PATH ? null : keys;
}

/** @throws InputError `invalid_field`. */
export function readRecordsPath(text: string): RecordsPath {
  const path = parseRecordsPath(text);
  if (path !== null) return path;
  const message = `records must be keys with dots between, such as data.users, ${MAX_RECORDS_PATH} at most`;
  throw inputError('invalid_field', message, 'records');
}

/** Writes a path as `parseRecordsPath` reads it. */
export function recordsPathText(path: RecordsPath): string {
  return path.map((key) => key.replace(/[.\\]/g, '\\$&')).join('.');
}
