import type { LoadOptions } from '../../domain/load.ts';
import type { Notify, Outcome } from '../../domain/notification.ts';
import type { SourceFormat } from '../../domain/source.ts';

export const missedPolicies = ['run_once', 'run_all', 'skip'] as const;
export const overlapPolicies = ['skip', 'wait'] as const;
export const notifiedEnds = ['completed', 'completed_with_rejects', 'failed'] as const satisfies Outcome[];
export const relativeRanges = [
  'today',
  'yesterday',
  'last_7_days',
  'this_month',
  'last_month',
  'since_last_success',
] as const;

export interface Schedule {
  readonly name: string;
  /** Name of the environment. */
  readonly environment: string;
  /** Five fields, or a name such as `@daily`. */
  readonly cron: string;
  /** IANA name. */
  readonly timeZone: string;
  readonly enabled: boolean;
  readonly missed: (typeof missedPolicies)[number];
  readonly missedWithinMs: number;
  readonly overlap: (typeof overlapPolicies)[number];
  readonly notify: Notify | null;
  readonly work: ScheduledWork;
}

type ScheduledWork = ScheduledLoad | ScheduledExport;

export interface ScheduledLoad {
  readonly kind: 'load';
  readonly source: SourceDefinition;
  /** The format; null to detect it. */
  readonly format: SourceFormat | null;
  /** The saved mapping that stands in place of a map; null: none. */
  readonly mapping: string | null;
  readonly options: LoadOptions;
}

/** Texts marked "may hold ${env:…}" are stored so, and filled in only when they are used. */
export type SourceDefinition = FilesDefinition | HttpDefinition | PostgresDefinition | S3Definition;

export interface FilesDefinition {
  readonly kind: 'files';
  readonly pattern: string;
}

export interface HttpDefinition {
  readonly kind: 'http';
  /** May hold ${env:…}. */
  readonly url: string;
  /** The values may hold ${env:…}. */
  readonly headers: Readonly<Record<string, string>>;
  readonly allowHttp: boolean;
  readonly allowPrivate: boolean;
}

export interface PostgresDefinition {
  readonly kind: 'postgres';
  /** May hold ${env:…}. */
  readonly url: string;
  readonly query: string;
  readonly timeoutMs: number;
}

export interface S3Definition {
  readonly kind: 's3';
  readonly bucket: string;
  readonly prefix: string;
  readonly endpoint: string | null;
  readonly region: string | null;
  /** Both may hold ${env:…}; null: those that the process finds by itself. */
  readonly accessKey: string | null;
  readonly secretKey: string | null;
}

export interface ScheduledExport {
  readonly kind: 'export';
  /** The relative range; null for the one in `body`, or everything. */
  readonly range: (typeof relativeRanges)[number] | null;
  /** The request for an export, with `from` and `to` only if `range` is null. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly retentionDays: number | null;
  /** Folder below one of SCHEDULES_EXPORT_ROOTS; null: the files stay where exports are kept. */
  readonly toDir: string | null;
}

/** A run's copy of its schedule, since the file may change before it ends. */
export interface RunDefinition {
  readonly timeZone: string;
  readonly work: ScheduledWork;
}
