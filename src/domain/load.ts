import type { LoadEntity } from './entity.ts';
import type { Tally } from './tally.ts';

export const loadTypes = ['import', 'bulk_identify_users', 'bulk_identify_companies'] as const;
export type LoadType = (typeof loadTypes)[number];

/** queued → processing → completed | failed | cancelled. */
export const loadStatuses = ['queued', 'processing', 'completed', 'failed', 'cancelled'] as const;
export type LoadStatus = (typeof loadStatuses)[number];

export const endedStatuses = ['completed', 'failed', 'cancelled'] as const satisfies readonly LoadStatus[];

/** `failure.code` of a load whose every record was refused: there is nothing of it to be retried. */
export const ALL_RECORDS_REFUSED = 'all_records_refused';

/** How the stored file is written: JSON arrays are stored as NDJSON while they are received. */
export type StoredFormat = 'csv' | 'ndjson';

/** What a load may be asked for besides its file. */
export interface LoadOptions {
  readonly entity: LoadEntity;
  /** Their header (or NDJSON key) → our name. */
  readonly map: Readonly<Record<string, string>>;
  readonly dryRun: boolean;
  /** More rejects than this fail the load: a count, or a share of the records in percent. */
  readonly maxErrors: MaxErrors | null;
  readonly ifDuplicate: 'load' | 'skip' | 'reject';
}

export type MaxErrors = { readonly count: number } | { readonly percent: number };

export const defaultLoadOptions: LoadOptions = {
  entity: 'auto',
  map: {},
  dryRun: false,
  maxErrors: null,
  ifDuplicate: 'load',
};

/** A load as its ledger row tells it, for every surface that shows one. Times in UTC. */
export interface Load {
  readonly jobId: string;
  readonly type: LoadType;
  readonly entity: LoadEntity;
  readonly status: LoadStatus;
  readonly filename: string;
  /** Bytes as received. */
  readonly fileSize: number;
  /** Data records in the file. */
  readonly totalRows: number;
  readonly acceptedAt: Date;
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
  readonly tally: Tally;
  readonly dryRun: boolean;
  readonly failure: { readonly code: string; readonly message: string } | null;
  /** What the last try ran into, as long as the job goes on trying. */
  readonly lastError: string | null;
  readonly attempts: number;
  /** Unfinished loads and deletions before this one in its lane; 0 once it runs, null once it ended, and in lists. */
  readonly queuePosition: number | null;
  /** Hex, of the bytes as received. */
  readonly sha256: string;
  readonly duplicateOf: string | null;
}
