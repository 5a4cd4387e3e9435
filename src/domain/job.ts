import type { deletionTypes } from './deletion.ts';
import type { LoadStatus, LoadType } from './load.ts';
import type { Origin } from './task.ts';

/** Outcomes of jobs. `held` means that the job is waiting for a person's decision. */
export const outcomes = ['completed', 'completed_with_rejects', 'held', 'failed', 'cancelled'] as const;
export type Outcome = (typeof outcomes)[number];

/** Mail addresses that a job lists, and the outcomes that are reported to them. */
export interface Notify {
  readonly emails: readonly string[];
  readonly on: readonly Outcome[];
}

/**
 * Returns the outcome. `isPartial` means that records were refused, or that a request to a
 * capability was not met (`LoadField`).
 */
export function outcomeOf(
  status: 'completed' | 'held' | 'failed' | 'cancelled',
  isPartial: boolean,
): Outcome {
  return status === 'completed' && isPartial ? 'completed_with_rejects' : status;
}

export function addressesFor(notify: Notify | null, outcome: Outcome): readonly string[] {
  return notify?.on.includes(outcome) === true ? notify.emails : [];
}

/**
 * Reason for a refusal. The code is one of `errorCodes`, the code of a failed load, or another
 * code.
 */
export interface RefusalReason {
  readonly error_code: string;
  readonly message: string;
  readonly details: string;
}

export interface ShownJob {
  readonly type: LoadType | 'export' | (typeof deletionTypes)[number];
  readonly status: LoadStatus;
  readonly filename: string;
  readonly jobId: string;
  readonly fileSize: number;
  readonly totalRows: number;
  readonly acceptedAt: Date;
  /**
   * Time at which the current or latest work (planning or loading) started. `null` until the job
   * starts for the first time.
   */
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
}

export interface ListedJob extends ShownJob {
  readonly counts: Readonly<Record<string, number>> | null;
  readonly origin: Origin['kind'] | null;
  readonly originName: string | null;
}
