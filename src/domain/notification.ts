/** The ends of jobs, and held: a load waits for a person. */
export const outcomes = ['completed', 'completed_with_rejects', 'held', 'failed', 'cancelled'] as const;
export type Outcome = (typeof outcomes)[number];

/** The default of a subscription. Whoever cancels a job knows. */
export const defaultOutcomes: readonly Outcome[] = ['completed', 'completed_with_rejects', 'held', 'failed'];

/** A `schedule` is a run of one: it may make no job, or many. */
export const jobKinds = ['load', 'export', 'schedule'] as const;
export type JobKind = (typeof jobKinds)[number];

/** The default of a subscription. The jobs of a schedule's run send notifications of their own. */
export const defaultJobKinds: readonly JobKind[] = ['load', 'export'];

/** `file.refused`: the inbox could not load a file. Subscriptions to failed loads receive it. */
export type EventType = `${JobKind}.${Outcome}` | 'file.refused' | 'ping';

export const channels = ['webhook', 'email'] as const;
export type Channel = (typeof channels)[number];

/** pending → delivered | dead; a replay makes it pending again. */
export const deliveryStates = ['pending', 'delivered', 'dead'] as const;
export type DeliveryState = (typeof deliveryStates)[number];

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

/*
 * Stricter than the standards: no quoted parts, comments, groups, address literals or names beside the address. What is
 * left cannot end a header line, add a recipient, or be taken for a command by a mail server or for an option (`-oQ…`) by a
 * program that sends mail.
 */
const local = /^[a-z0-9!#$%&'*+/=?^_`{|}~][a-z0-9!#$%&'*+/=?^_`{|}~-]*(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/i;
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i;

/**
 * Tells whether this is one plain address in ASCII, such as `ada@example.com`, and nothing else. Its domain has a dot: mail to
 * `a@b` leads nowhere. The one name without a dot is `localhost`, for a mail server on this machine.
 */
export function isMailAddress(text: string): boolean {
  const at = text.lastIndexOf('@');
  const [name, domain] = [text.slice(0, at), text.slice(at + 1)];
  if (at < 1 || name.length > 64 || domain.length > 253 || text.length > 254) return false;
  // The beginning of an encoded word, which some programs decode: `=?utf-8?q?…?=`.
  if (name.includes('=?')) return false;
  const labels = domain.split('.');
  if (labels.length < 2 && domain !== 'localhost') return false;
  return local.test(name) && labels.every((part) => label.test(part));
}
