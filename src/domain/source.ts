/** How a file may be written that is sent. */
export const sourceFormats = ['csv', 'ndjson', 'json', 'xlsx', 'parquet', 'avro'] as const;
export type SourceFormat = (typeof sourceFormats)[number];

/** What a caller says of how a file is written. What is left out is found by looking at its first MiB. */
export interface SourceOptions {
  /** A label of the WHATWG Encoding Standard, such as `windows-1252`. */
  readonly encoding?: string;
  /** Between the cells of a CSV: one character or several; `blanks` for any number of blanks. */
  readonly delimiter?: string;
  /** One ASCII character; empty: quotes mean nothing. */
  readonly quote?: string;
  /** What makes an ordinary character of a quote: the quote itself (doubled) or a backslash; empty: nothing does. */
  readonly escape?: string;
  /** Which record names the columns, counted from 1 behind what is skipped; `none`: no record does. */
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
  /** What becomes of records with fewer or more cells than the header; `refuse` by default. */
  readonly ragged?: 'refuse' | 'pad';
  /** What becomes of records with one quote too many at the start of a cell; `refuse` by default. */
  readonly strayQuotes?: 'refuse' | 'keep';
  /** Refuses a header with columns that have no name, or the same. */
  readonly strictHeader?: boolean;
  /** What becomes of an apostrophe before what a spreadsheet would run, as exports have it. */
  readonly apostrophes?: 'remove' | 'keep';
  /** Of a workbook; the first by default. */
  readonly sheet?: string;
  /** Where the records of a JSON document are: keys with dots between. */
  readonly records?: string;
}

/** How a file turned out to be written, for the job record. */
export interface ReadAs {
  readonly format: SourceFormat;
  /** In small letters, as the WHATWG Encoding Standard calls it; null for what is no text. */
  readonly encoding: string | null;
  /** Null unless the file is a CSV. */
  readonly csv: CsvReadAs | null;
  /** Of a workbook: its sheet. */
  readonly sheet: string | null;
  /** The one file in a ZIP archive. */
  readonly member: string | null;
  /** What a person should know of it, one sentence each: columns that were given a name, lines passed over, … */
  readonly notes: readonly string[];
}

/** As the options of the same names. */
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
