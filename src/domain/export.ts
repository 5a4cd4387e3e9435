import { eventKinds, isRecordKind } from './entity.ts';
import type { LoadStatus } from './load.ts';

/** The cursor of an export: 18 characters for each transaction that was open. */
const MAX_CURSOR_CHARS = 64 * 1024;

export const datasets = ['users', 'companies', 'events'] as const;
export type Dataset = (typeof datasets)[number];

/** The layout of the files: a dataset each, or rows of all kinds in order of time. */
export const exportLayouts = ['datasets', 'stream'] as const;
export type ExportLayout = (typeof exportLayouts)[number];

export type FileDataset = Dataset | 'stream';

export const compressions = ['gzip', 'none'] as const;
export type Compression = (typeof compressions)[number];

export type ExportStatus = Exclude<LoadStatus, 'held'>;

/** Content of an export, as JSON in `sluice.exports.request`. Lists mean any of their items, empty ones all; kinds combine with AND. */
export interface ExportRequest {
  /** ISO 8601 instants with microseconds; `from` included, `to` excluded. Null: no bound. */
  readonly from: string | null;
  readonly to: string | null;
  /** The cursor of an earlier export: only what it does not see. */
  readonly since: string | null;
  /** Removed profiles and properties since the cursor are exported too. */
  readonly includeRemoved: boolean;
  /** The export begins once the loads that were accepted before it have ended. */
  readonly waitForLoads: boolean;
  readonly layout: ExportLayout;
  readonly datasets: readonly Dataset[];
  /** Stored types of events, and names of others that are wanted beside them; both empty: all. */
  readonly eventKinds: readonly string[];
  readonly eventNames: readonly string[];
  readonly userIds: readonly string[];
  readonly companyIds: readonly string[];
  readonly segmentId: number | null;
  readonly exclusions: readonly Exclusion[];
  readonly format: ExportFormat;
  readonly compression: Compression;
  readonly escapeFormulas: boolean;
}

/** All columns of all events. */
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
  segmentId: null,
  exclusions: [],
  format: 'parquet',
  compression: 'none',
  escapeFormulas: false,
};

/** The parts of a request that decide which columns the rows of a dataset have. */
export type RowShape = Pick<ExportRequest, 'includeRemoved'>;

export const exclusionKinds = ['user', 'company', 'event', 'segment', 'property'] as const;

/** Something to leave out. `*` in `pattern` stands for any text; a segment's pattern is its id. */
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

/** Tells whether a text is a cursor: a snapshot of PostgreSQL, `xmin:xmax:xip,…`. */
export function isCursor(text: string): boolean {
  const [, first, end, open] = text.length > MAX_CURSOR_CHARS ? [] : (cursorForm.exec(text) ?? []);
  if (first === undefined || end === undefined || open === undefined) return false;
  const [least, most] = [BigInt(first), BigInt(end)];
  const ids = open === '' ? [] : open.split(',').map(BigInt);
  return (
    least > 0n && least <= most && ids.every((id, index) => id >= (ids[index - 1] ?? least) && id < most)
  );
}

const datasetOf: ReadonlyMap<string, Dataset> = new Map([
  ['identify_user', 'users'],
  ['users', 'users'],
  ['identify_company', 'companies'],
  ['companies', 'companies'],
  ['events', 'events'],
]);

export type Selection = Pick<ExportRequest, 'datasets' | 'eventKinds' | 'eventNames'>;

/** Reads `event_type`, which selects files by name, and events by kind or by their own name. */
export function selectEvents(eventTypes: readonly string[]): Selection {
  if (eventTypes.length === 0) return { datasets, eventKinds: [], eventNames: [] };
  const chosen = new Set(eventTypes.map((type) => datasetOf.get(type) ?? 'events'));
  const isAll = eventTypes.includes('events');
  // All but `track` are also selected as names, for callers who track them under these names.
  const kinds = eventKinds.filter((kind) => !isAll && eventTypes.includes(kind));
  return {
    datasets: datasets.filter((dataset) => chosen.has(dataset)),
    eventKinds: kinds,
    eventNames: isAll
      ? []
      : [...new Set([...kinds.filter((kind) => kind !== 'track'), ...namesAmong(eventTypes)])],
  };
}

/** The body that asks for it, with the names of the API; what says nothing is left out. */
export function toGivenRequest(request: ExportRequest): Readonly<Record<string, unknown>> {
  const { from, to, since, userIds, companyIds, segmentId, exclusions, layout, format, compression } =
    request;
  const all: Readonly<Record<string, unknown>> = {
    from,
    to,
    since,
    include_removed: request.includeRemoved ? true : null,
    wait_for_loads: request.waitForLoads ? true : null,
    event_type: givenEvents(request),
    user_id: userIds,
    company_id: companyIds,
    segment_id: segmentId,
    exclusions: exclusions.map(({ kind, pattern }) => `${kind}:${pattern}`).join(','),
    layout,
    format,
    compression: exportFormatFacts[format].isPackedInside ? null : compression,
    escape_formulas: request.escapeFormulas ? null : false,
  };
  const saysNothing = (value: unknown): boolean =>
    value === null || value === '' || (Array.isArray(value) && value.length === 0);
  return Object.fromEntries(Object.entries(all).filter(([, value]) => !saysNothing(value)));
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

/*
 * The formats of exported files. To add one, add it here and write its `FormatWriter` in `src/export/write/formats.ts`;
 * it does not compile without. API, command line, capabilities, console and the check of exported files follow this table.
 */

interface FormatFacts {
  readonly label: string;
  readonly isPackedInside: boolean;
  /** A load restores every value, as `export --everything` requires. */
  readonly isLossless: boolean;
  /** A spreadsheet opens it, and would run cells that begin like a formula. */
  readonly isForSpreadsheets: boolean;
}

const facts = {
  ndjson: { label: 'NDJSON', isPackedInside: false, isLossless: true, isForSpreadsheets: false },
  csv: { label: 'CSV', isPackedInside: false, isLossless: false, isForSpreadsheets: true },
  parquet: { label: 'Parquet', isPackedInside: true, isLossless: true, isForSpreadsheets: false },
} as const satisfies Readonly<Record<string, FormatFacts>>;

export type ExportFormat = keyof typeof facts;
export const exportFormats = Object.keys(facts) as readonly ExportFormat[];
export const exportFormatFacts: Readonly<Record<ExportFormat, FormatFacts>> = facts;

export function isExportFormat(name: string): name is ExportFormat {
  return Object.hasOwn(facts, name);
}
