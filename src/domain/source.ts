import { inputError } from '../base/errors.ts';
import { MAX_RECORDS_PATH } from '../base/limits.ts';

export const sourceFormats = ['csv', 'ndjson', 'json', 'xlsx', 'parquet'] as const;
export type SourceFormat = (typeof sourceFormats)[number];

/** Products whose export files are read as they are (docs/api.md, "Presets"). */
export const presets = ['mixpanel', 'amplitude', 'segment', 'posthog', 'userpilot'] as const;
export type Preset = (typeof presets)[number];
export const presetTitles: Readonly<Record<Preset, string>> = {
  mixpanel: 'Mixpanel',
  amplitude: 'Amplitude',
  segment: 'Segment or RudderStack',
  posthog: 'PostHog',
  userpilot: 'Userpilot',
};

/** Products whose groups are of several kinds: `company_from` says which are companies. */
export const groupedPresets: ReadonlySet<Preset | null> = new Set(['mixpanel', 'amplitude', 'posthog']);

/** The options of a file's format, as `source-options.ts` explains them. Those left out are detected from its first MiB. */
export interface SourceOptions {
  readonly encoding?: string;
  readonly delimiter?: string;
  readonly quote?: string;
  readonly escape?: string;
  readonly header?: 'none' | number;
  readonly headerRows?: number;
  readonly skipRows?: number;
  readonly skipFooter?: number;
  readonly comment?: string;
  readonly nulls?: readonly string[];
  /** Pairs such as `Seats=number` (`readCellType`). */
  readonly types?: readonly string[];
  readonly ragged?: 'refuse' | 'pad';
  readonly apostrophes?: 'remove' | 'keep';
  readonly sheet?: string;
  readonly records?: string;
  readonly existing?: string;
  /** Those of capabilities. */
  readonly [option: string]: unknown;
}

export interface ReadAs {
  readonly format: SourceFormat;
  readonly encoding: string | null;
  readonly csv: CsvReadAs | null;
  /** The sheet of a workbook, and the names of all its sheets. */
  readonly sheet: string | null;
  readonly sheets: readonly string[] | null;
  readonly member: string | null;
  /** Sentences for a person, about renamed columns, skipped lines and the like. */
  readonly notes: readonly string[];
}

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

export function readRecordsPath(text: string): RecordsPath {
  const path = parseRecordsPath(text);
  if (path !== null) return path;
  const message = `records must be keys with dots between, such as data.users, ${MAX_RECORDS_PATH} at most`;
  throw inputError('invalid_field', message, 'records');
}

export function recordsPathText(path: RecordsPath): string {
  return path.map((key) => key.replace(/[.\\]/g, '\\$&')).join('.');
}
