/** The ends of jobs, and held: a load waits for a person. */
export const outcomes = ['completed', 'completed_with_rejects', 'held', 'failed', 'cancelled'] as const;
export type Outcome = (typeof outcomes)[number];

/** A `schedule` is a run of one: it may make no job, or many. */
export const jobKinds = ['load', 'export', 'schedule'] as const;
export type JobKind = (typeof jobKinds)[number];

/** `file.refused`: the inbox could not load a file. Subscriptions to failed loads receive it. */
export type EventType = `${JobKind}.${Outcome}` | 'file.refused' | 'ping';

/** Addresses that a job or a run itself names, to be notified if it ends in one of these ways. */
export interface Notify {
  readonly emails: readonly string[];
  readonly on: readonly Outcome[];
}

/** `isPartial`: records were refused, or a mirror left all profiles as they are. */
export function outcomeOf(
  status: 'completed' | 'held' | 'failed' | 'cancelled',
  isPartial: boolean,
): Outcome {
  return status === 'completed' && isPartial ? 'completed_with_rejects' : status;
}

export function addressesFor(notify: Notify | null, outcome: Outcome): readonly string[] {
  return notify?.on.includes(outcome) === true ? notify.emails : [];
}
