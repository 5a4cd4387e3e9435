import type { deletionTypes } from './deletion.ts';
import type { LoadStatus, LoadType } from './load.ts';
import type { Origin } from './task.ts';

/** Ends of jobs, and `held`, which awaits a person. */
export const outcomes = ['completed', 'completed_with_rejects', 'held', 'failed', 'cancelled'] as const;
export type Outcome = (typeof outcomes)[number];

/** Addresses that a job names, with the outcomes to report. */
export interface Notify {
  readonly emails: readonly string[];
  readonly on: readonly Outcome[];
}

/** `isPartial`: records were refused, or a request of a capability was not met (`LoadField`). */
export function outcomeOf(
  status: 'completed' | 'held' | 'failed' | 'cancelled',
  isPartial: boolean,
): Outcome {
  return status === 'completed' && isPartial ? 'completed_with_rejects' : status;
}

export function addressesFor(notify: Notify | null, outcome: Outcome): readonly string[] {
  return notify?.on.includes(outcome) === true ? notify.emails : [];
}

/** Reason with a code of `errorCodes`, of a failed load, or another. */
export interface RefusalReason {
  readonly error_code: string;
  readonly message: string;
  readonly details: string;
}

/** Data of `file.refused`: an operator's file that could not be loaded. */
export interface RefusedFile {
  readonly file_id: string;
  /** Path in the environment's folder, such as `users/nightly.csv`. */
  readonly file: string;
  readonly size: number;
  readonly sha256: string | null;
  readonly reasons: readonly RefusalReason[];
}

export interface ShownJob {
  readonly type: LoadType | 'export' | (typeof deletionTypes)[number];
  readonly status: LoadStatus;
  readonly filename: string;
  readonly jobId: string;
  readonly fileSize: number;
  readonly totalRows: number;
  readonly acceptedAt: Date;
  /** Start of the current or last work, planning or loading. `null` while the job waits. */
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
}

export interface ListedJob extends ShownJob {
  readonly counts: Readonly<Record<string, number>> | null;
  readonly origin: Origin['kind'] | null;
  readonly originName: string | null;
}
