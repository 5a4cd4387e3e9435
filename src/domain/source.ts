import { inputError } from '../base/errors.ts';
import { MAX_RECORDS_PATH } from '../base/limits.ts';

export const sourceFormats = ['csv', 'ndjson', 'json', 'xlsx', 'parquet'] as const;
export type SourceFormat = (typeof sourceFormats)[number];

/** Products whose export files can be loaded (docs/files.md, "Presets"). */
export const presets = ['mixpanel', 'amplitude', 'segment', 'posthog', 'userpilot'] as const;
export type Preset = (typeof presets)[number];
export const presetTitles: Readonly<Record<Preset, string>> = {
  mixpanel: 'Mixpanel',
  amplitude: 'Amplitude',
  segment: 'Segment or RudderStack',
  posthog: 'PostHog',
  userpilot: 'Userpilot',
};

/**
 * Presets whose files have several kinds of groups. `company_from` names the kind that becomes
 * companies.
 */
export const groupedPresets: ReadonlySet<Preset | null> = new Set(['mixpanel', 'amplitude', 'posthog']);

/** Options of `source-options.ts`. Missing options are detected from the file's first MiB. */
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
  /** Types of columns, as items such as `Seats=number` (`readCellType`). */
  readonly types?: readonly string[];
  readonly ragged?: 'refuse' | 'pad';
  readonly apostrophes?: 'remove' | 'keep';
  readonly sheet?: string;
  readonly records?: string;
  readonly existing?: string;
  readonly [option: string]: unknown;
}

export interface ReadAs {
  readonly format: SourceFormat;
  readonly encoding: string | null;
  readonly csv: CsvReadAs | null;
  readonly sheet: string | null;
  readonly sheets: readonly string[] | null;
  readonly member: string | null;
  /** Messages for the user, for example about renamed columns or skipped lines. */
  readonly notes: readonly string[];
}

export interface CsvReadAs {
  readonly delimiter: string;
  readonly quote: string;
  readonly escape: string;
  readonly comment: string;
  readonly nulls: readonly string[];
  readonly ragged: 'refuse' | 'pad';
  /** Number of the header's line, from 1. `null` if there is no header. */
  readonly headerLine: number | null;
  /** Names of the first MAX_READ_AS_COLUMNS columns. A `map` must spell them the same way. */
  readonly columns: readonly string[];
  readonly columnCount: number;
}

/**
 * Keys and positions that lead to the array of records in a JSON document. Empty for the document
 * itself.
 */
export type RecordsPath = readonly string[];

/**
 * Reads a path such as `data.users`. A number in the path is a position from 0. A backslash escapes
 * a dot or a backslash. `null` for invalid text.
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
