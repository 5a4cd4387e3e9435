import { eventKinds, isRecordKind } from './entity.ts';
import type { LoadStatus } from './load.ts';

/**
 * Maximum length of a cursor. A cursor contains the id of each open transaction, and an id has up
 * to 18 digits.
 */
const MAX_CURSOR_CHARS = 64 * 1024;

export const datasets = ['users', 'companies', 'events'] as const;
export type Dataset = (typeof datasets)[number];

/** `datasets`: separate files. `stream`: all rows in the same files, in chronological order. */
export const exportLayouts = ['datasets', 'stream'] as const;
export type ExportLayout = (typeof exportLayouts)[number];

export type FileDataset = Dataset | 'stream';

export const compressions = ['gzip', 'none'] as const;
export type Compression = (typeof compressions)[number];

export type ExportStatus = Exclude<LoadStatus, 'held'>;

/**
 * An export request. A row matches a list of the request if it matches any item of the list. An
 * empty list matches all rows.
 */
export interface ExportRequest {
  /**
   * Range of times, in ISO 8601 with microseconds. `from` is inclusive and `to` is exclusive.
   * `null` means no limit.
   */
  readonly from: string | null;
  readonly to: string | null;
  /** Cursor of an earlier export, after which changes are exported. `null` for everything. */
  readonly since: string | null;
  /** True to include profiles and properties removed since the cursor. */
  readonly includeRemoved: boolean;
  /** True to wait for loads accepted before the export. */
  readonly waitForLoads: boolean;
  readonly layout: ExportLayout;
  readonly datasets: readonly Dataset[];
  /** An event matches by kind or name. If both lists are empty, all events match. */
  readonly eventKinds: readonly string[];
  readonly eventNames: readonly string[];
  readonly userIds: readonly string[];
  readonly companyIds: readonly string[];
  /** Options that select users (`ExportSeam`), as in the request. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly exclusions: readonly Exclusion[];
  readonly format: ExportFormat;
  readonly compression: Compression;
  readonly escapeFormulas: boolean;
}

export const everything: ExportRequest = {
  from: null,
  to: null,
  since: null,
  includeRemoved: false,
  waitForLoads: false,
  layout: 'datasets',
  datasets: ['events'],
  eventKinds: [],
  eventNames: [],
  userIds: [],
  companyIds: [],
  options: {},
  exclusions: [],
  format: 'parquet',
  compression: 'none',
  escapeFormulas: false,
};

export type RowShape = Pick<ExportRequest, 'includeRemoved'>;

export const exclusionKinds = ['user', 'company', 'event', 'segment', 'property'] as const;

/**
 * Rows that an export omits. In `pattern`, `*` matches any text. If `kind` is `segment`, `pattern`
 * is the segment's id.
 */
export interface Exclusion {
  readonly kind: (typeof exclusionKinds)[number];
  readonly pattern: string;
}

export interface ExportFile {
  readonly filename: string;
  readonly dataset: FileDataset | 'manifest';
  readonly ref: string;
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
}

export interface ExportWarning {
  readonly message: string;
  readonly details: string;
}

const cursorForm = /^(\d{1,18}):(\d{1,18}):((?:\d{1,18}(?:,\d{1,18})*)?)$/;

/** A PostgreSQL snapshot: `xmin:xmax:xip,…`. */
export function isCursor(text: string): boolean {
  const [, first, end, open] = text.length > MAX_CURSOR_CHARS ? [] : (cursorForm.exec(text) ?? []);
  if (first === undefined || end === undefined || open === undefined) return false;
  const min = BigInt(first);
  const max = BigInt(end);
  const ids = open === '' ? [] : open.split(',').map(BigInt);
  return min > 0n && min <= max && ids.every((id, index) => id >= (ids[index - 1] ?? min) && id < max);
}

const datasetOf: ReadonlyMap<string, Dataset> = new Map([
  ['identify_user', 'users'],
  ['users', 'users'],
  ['identify_company', 'companies'],
  ['companies', 'companies'],
  ['events', 'events'],
]);

export type Selection = Pick<ExportRequest, 'datasets' | 'eventKinds' | 'eventNames'>;

/**
 * Reads the field `event_type`. It contains names of datasets, kinds of events or names of events.
 */
export function selectEvents(eventTypes: readonly string[]): Selection {
  if (eventTypes.length === 0) return { datasets, eventKinds: [], eventNames: [] };
  const chosen = new Set(eventTypes.map((type) => datasetOf.get(type) ?? 'events'));
  const isAll = eventTypes.includes('events');
  // Each kind except `track` also selects the events that have the kind as their name.
  const kinds = eventKinds.filter((kind) => !isAll && eventTypes.includes(kind));
  return {
    datasets: datasets.filter((dataset) => chosen.has(dataset)),
    eventKinds: kinds,
    eventNames: isAll
      ? []
      : [...new Set([...kinds.filter((kind) => kind !== 'track'), ...namesAmong(eventTypes)])],
  };
}

/** Returns the body with which a caller would make this request, without empty values. */
export function toGivenRequest(request: ExportRequest): Readonly<Record<string, unknown>> {
  const { from, to, since, userIds, companyIds, options, exclusions, layout, format, compression } = request;
  const all: Readonly<Record<string, unknown>> = {
    from,
    to,
    since,
    include_removed: request.includeRemoved ? true : null,
    wait_for_loads: request.waitForLoads ? true : null,
    event_type: givenEvents(request),
    user_id: userIds,
    company_id: companyIds,
    ...options,
    exclusions: exclusions.map(({ kind, pattern }) => `${kind}:${pattern}`).join(','),
    layout,
    format,
    compression: exportFormatFacts[format].isPackedInside ? null : compression,
    escape_formulas: request.escapeFormulas ? null : false,
  };
  const isEmpty = (value: unknown): boolean =>
    value === null || value === '' || (Array.isArray(value) && value.length === 0);
  return Object.fromEntries(Object.entries(all).filter(([, value]) => !isEmpty(value)));
}

function givenEvents(selection: Selection): readonly string[] {
  const { datasets: chosen, eventKinds: kinds, eventNames: names } = selection;
  const some = [...kinds, ...names.filter((name) => !kinds.includes(name))];
  if (chosen.length === datasets.length && some.length === 0) return [];
  return chosen.flatMap((dataset) => (dataset === 'events' && some.length > 0 ? some : [dataset]));
}

export function namesAmong(eventTypes: readonly string[]): string[] {
  return eventTypes.filter((type) => !datasetOf.has(type) && !isRecordKind(type));
}

// Requests, flags, forms, file names, media types and refusals are derived from this table. A new
// format also needs a `FormatWriter` in `src/export/write/formats.ts`.

interface FormatFacts {
  readonly label: string;
  readonly mediaType: string;
  readonly isPackedInside: boolean;
  /**
   * True if a load restores every value and null, as `--everything` and `include_removed` require.
   */
  readonly isLossless: boolean;
  /** True if spreadsheet programs would run formulas in files of this format. */
  readonly isForSpreadsheets: boolean;
}

const facts = {
  ndjson: {
    label: 'NDJSON',
    mediaType: 'application/x-ndjson',
    isPackedInside: false,
    isLossless: true,
    isForSpreadsheets: false,
  },
  csv: {
    label: 'CSV',
    mediaType: 'text/csv',
    isPackedInside: false,
    isLossless: false,
    isForSpreadsheets: true,
  },
  parquet: {
    label: 'Parquet',
    mediaType: 'application/vnd.apache.parquet',
    isPackedInside: true,
    isLossless: true,
    isForSpreadsheets: false,
  },
} as const satisfies Readonly<Record<string, FormatFacts>>;

export type ExportFormat = keyof typeof facts;
export const exportFormats = Object.keys(facts) as readonly ExportFormat[];
export const exportFormatFacts: Readonly<Record<ExportFormat, FormatFacts>> = facts;

function formatsThat(has: (facts: FormatFacts) => boolean): string {
  return exportFormats
    .map((format) => exportFormatFacts[format])
    .filter(has)
    .map(({ label }) => label)
    .join(', ');
}

export const spreadsheetFormats = formatsThat((format) => format.isForSpreadsheets);
export const lossyFormats = formatsThat((format) => !format.isLossless);

export function isExportFormat(name: string): name is ExportFormat {
  return Object.hasOwn(facts, name);
}

export const orderOf = {
  users: ['user_id'],
  companies: ['company_id'],
  events: ['inserted_at', 'event_id', 'user_id'],
  stream: ['inserted_at', 'event_type', 'user_id', 'company_id'],
} as const satisfies Record<FileDataset, readonly string[]>;

/**
 * A column of exported rows. In Parquet, a column of the kind `text` contains the text without
 * JSON's quotes and escapes. `number` and `boolean` are only for columns of a single property.
 */
export interface Column {
  readonly name: string;
  readonly kind: 'text' | 'json' | 'instant' | 'number' | 'boolean';
  readonly isOptional: boolean;
  /**
   * True if NDJSON writes the key even for null. If the key of a removed company were missing, a
   * load would keep the user's company.
   */
  readonly writesNull?: boolean;
}

const column = (name: string, kind: Column['kind'] = 'text'): Column => ({ name, kind, isOptional: false });
const optional = (name: string): Column => ({ name, kind: 'text', isOptional: true });
const nullable = (name: string): Column => ({ ...optional(name), writesNull: true });
/** `true` for a removed profile, otherwise empty. */
const removedColumn = column('removed', 'json');
export const metadata = column('metadata', 'json');
const insertedAt = column('inserted_at', 'instant');
const seen = [column('first_seen_at', 'instant'), column('last_seen_at', 'instant')];

/** All properties share `metadata`, because the values of one property may have several types. */
const columns: Readonly<Record<FileDataset, readonly Column[]>> = {
  users: [column('user_id'), nullable('company_id'), metadata, ...seen],
  companies: [column('company_id'), metadata, ...seen],
  events: [
    ...[column('event_id'), column('event_type'), column('event_name'), column('user_id')],
    ...[optional('company_id'), column('source'), insertedAt, metadata],
  ],
  stream: [
    ...[column('event_type'), nullable('user_id'), nullable('company_id'), insertedAt],
    ...[nullable('event_id'), nullable('event_name'), nullable('source'), metadata],
  ],
};

export function columnsOf(dataset: FileDataset, request: RowShape): readonly Column[] {
  const stored = storedColumns(dataset);
  if (!request.includeRemoved || dataset === 'events' || dataset === 'stream') return stored;
  const [key, ...others] = stored;
  return [key as Column, ...others, removedColumn].map((each) => ({
    ...each,
    isOptional: each !== key,
    writesNull: false,
  }));
}

/**
 * The two times of profiles must be the last columns, because `profileTail` depends on this order.
 */
export function storedColumns(dataset: FileDataset): readonly Column[] {
  return columns[dataset];
}
