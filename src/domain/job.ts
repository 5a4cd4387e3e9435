import type { deletionTypes } from './deletion.ts';
import type { LoadStatus, LoadType } from './load.ts';
import type { Origin } from './task.ts';

/** `held`: waits for a person's decision. */
export const outcomes = ['completed', 'completed_with_rejects', 'held', 'failed', 'cancelled'] as const;
export type Outcome = (typeof outcomes)[number];

export interface Notify {
  readonly emails: readonly string[];
  readonly on: readonly Outcome[];
}

/**
 * `isPartial`: records were refused, or a capability could not do what the request asked for
 * (`LoadField`).
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

/** A reason why a file was refused. `error_code` need not be one of `errorCodes`. */
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
  /** Start of the current or latest work (planning or loading). `null` before the first work. */
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
}

export interface ListedJob extends ShownJob {
  readonly counts: Readonly<Record<string, number>> | null;
  readonly origin: Origin['kind'] | null;
  readonly originName: string | null;
}
