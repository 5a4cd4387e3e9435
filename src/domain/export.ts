import type { LoadStatus } from './load.ts';

/** The files of an export. */
export const datasets = ['users', 'companies', 'events'] as const;
export type Dataset = (typeof datasets)[number];

export const exportFormats = ['ndjson', 'csv', 'parquet'] as const;
export type ExportFormat = (typeof exportFormats)[number];

export const compressions = ['gzip', 'none'] as const;
export type Compression = (typeof compressions)[number];

/** queued → processing → completed | failed | cancelled, as loads. */
export type ExportStatus = LoadStatus;

/**
 * What an export is to hold. Every list: any of them, and an empty one does not filter; filters of different kinds are
 * combined with AND. Kept as JSON in `sluice.exports.request`.
 */
export interface ExportRequest {
  /** ISO 8601 instants with microseconds; `from` included, `to` excluded. Null `from`: the beginning. */
  readonly from: string | null;
  readonly to: string;
  readonly datasets: readonly Dataset[];
  /** Names of events; empty: all. */
  readonly eventNames: readonly string[];
  readonly userIds: readonly string[];
  readonly companyIds: readonly string[];
  readonly segmentId: number | null;
  readonly exclusions: readonly Exclusion[];
  readonly format: ExportFormat;
  readonly compression: Compression;
  /** Cells that a spreadsheet would run as a formula are defused (CSV). */
  readonly escapeFormulas: boolean;
}

export const exclusionKinds = ['user', 'company', 'event', 'segment', 'property'] as const;

/** Something to leave out. `*` in `pattern` stands for any text; a segment's pattern is its id. */
export interface Exclusion {
  readonly kind: (typeof exclusionKinds)[number];
  readonly pattern: string;
}

export interface ExportFile {
  readonly filename: string;
  readonly dataset: Dataset | 'manifest';
  /** As `FileStore` knows it. */
  readonly ref: string;
  readonly rows: number;
  readonly bytes: number;
  /** Hex, of the file as it is stored. */
  readonly sha256: string;
}

/** An export as its ledger row tells it. Times in UTC. */
export interface Export {
  readonly exportId: number;
  readonly jobId: string;
  readonly environmentId: number;
  readonly status: ExportStatus;
  readonly format: ExportFormat;
  readonly emails: readonly string[];
  readonly requestedAt: Date;
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
  /** How often it was begun. */
  readonly attempts: number;
  /** 0 to 1. */
  readonly progress: number;
  readonly rowsWritten: number;
  readonly bytesWritten: number;
  readonly snapshotAt: Date | null;
  readonly failure: { readonly code: string; readonly message: string } | null;
  /** What the last try ran into, as long as the job goes on trying. */
  readonly lastError: string | null;
  /** None until it is completed, or once they have expired. */
  readonly files: readonly ExportFile[];
  readonly filesExpired: boolean;
}

const datasetOf: ReadonlyMap<string, Dataset> = new Map([
  ['identify_user', 'users'],
  ['users', 'users'],
  ['identify_company', 'companies'],
  ['companies', 'companies'],
  ['track', 'events'],
  ['events', 'events'],
]);

export interface Selection {
  readonly datasets: readonly Dataset[];
  /** Empty: all events, if events are among the datasets. */
  readonly eventNames: readonly string[];
}

/** What `event_type` selects. Files are chosen by their names; any other value is an event, and chooses the events file. */
export function selectEvents(eventTypes: readonly string[]): Selection {
  if (eventTypes.length === 0) return { datasets, eventNames: [] };
  const chosen = new Set(eventTypes.map((type) => datasetOf.get(type) ?? 'events'));
  const isAll = eventTypes.some((type) => datasetOf.get(type) === 'events');
  return {
    datasets: datasets.filter((dataset) => chosen.has(dataset)),
    eventNames: isAll ? [] : [...new Set(namesAmong(eventTypes))],
  };
}

/** Those that must be known names or keys of events. */
export function namesAmong(eventTypes: readonly string[]): string[] {
  return eventTypes.filter((type) => !datasetOf.has(type));
}
