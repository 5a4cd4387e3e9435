import type { deletionTypes } from './deletion.ts';
import type { LoadStatus, LoadType } from './load.ts';
import type { Origin } from './task.ts';

/** The ends of jobs, and held: a load waits for a person. */
export const outcomes = ['completed', 'completed_with_rejects', 'held', 'failed', 'cancelled'] as const;
export type Outcome = (typeof outcomes)[number];

/** Addresses that a job or a run itself names, to be notified if it ends in one of these ways. */
export interface Notify {
  readonly emails: readonly string[];
  readonly on: readonly Outcome[];
}

/** `isPartial`: records were refused, or a capability left undone what was asked (`LoadField`). */
export function outcomeOf(
  status: 'completed' | 'held' | 'failed' | 'cancelled',
  isPartial: boolean,
): Outcome {
  return status === 'completed' && isPartial ? 'completed_with_rejects' : status;
}

export function addressesFor(notify: Notify | null, outcome: Outcome): readonly string[] {
  return notify?.on.includes(outcome) === true ? notify.emails : [];
}

/** A reason why a file was not loaded as a whole. Codes of `errorCodes`, of failed loads, and others. */
export interface RefusalReason {
  readonly error_code: string;
  readonly message: string;
  readonly details: string;
}

/** The data of `file.refused`: a file of the operator that could not be loaded. */
export interface RefusedFile {
  readonly file_id: string;
  /** Below the folder of the environment, such as `users/nightly.csv`. */
  readonly file: string;
  readonly size: number;
  readonly sha256: string | null;
  readonly reasons: readonly RefusalReason[];
}

/** The fields that all jobs have, however they are read. */
export interface ShownJob {
  readonly type: LoadType | 'export' | (typeof deletionTypes)[number];
  readonly status: LoadStatus;
  readonly filename: string;
  readonly jobId: string;
  readonly fileSize: number;
  readonly totalRows: number;
  readonly acceptedAt: Date;
  /** The time at which the current work, or the last, began: planning, or the loading after it. `null` while the job waits. */
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
}

export interface ListedJob extends ShownJob {
  readonly counts: Readonly<Record<string, number>> | null;
  readonly origin: Origin['kind'] | null;
  readonly originName: string | null;
}
