import { uuidv7 } from 'uuidv7';
import { type JobKind, type Notify, type Outcome, outcomeOf } from '../domain/notification.ts';
import type { Database } from '../postgres/database.ts';
import type { DueDelivery } from '../postgres/ledger/notification-deliveries.ts';
import { findSubscribed, insertEvent, type Recipient } from '../postgres/ledger/notification-events.ts';
import type { AnnounceContext } from './context.ts';
import { persistence } from './delivery-policy.ts';
import { renderEvent } from './render-event.ts';

/** The end of a job, in the transaction that ends it. */
export interface EndedJob {
  readonly kind: JobKind;
  readonly environmentId: number;
  readonly jobId: string;
  readonly status: 'completed' | 'failed' | 'cancelled';
  readonly rejected: number;
  readonly notify: Notify | null;
  /** Addresses that have a message of their own about it. */
  readonly toldOtherwise: readonly string[];
  /** The job as the API renders it; only asked for if somebody is to be told. */
  readonly describe: () => Promise<object>;
}

/**
 * Writes down what is to be told and to whom; call it in the transaction that ends the job, so that neither is there
 * without the other, and ring for what it gives once that has committed. Nothing is written if nobody wants to know.
 */
export async function recordEnd(db: Database, job: EndedJob): Promise<DueDelivery[]> {
  const { kind, environmentId, jobId } = job;
  const outcome = outcomeOf(job.status, job.rejected);
  const recipients = [
    ...(await findSubscribed(db, environmentId, kind, outcome)),
    ...named(job.notify, outcome),
  ].filter(({ channel, target }) => channel !== 'email' || !job.toldOtherwise.includes(target));
  if (recipients.length === 0) return [];
  const eventId = uuidv7();
  const type = `${kind}.${outcome}` as const;
  const body = await renderEvent(db, { eventId, environmentId, type, data: await job.describe() });
  return insertEvent(db, { eventId, environmentId, type, jobId, body }, recipients, persistence.attempts);
}

function named(notify: Notify | null, outcome: Outcome): Recipient[] {
  if (notify === null || !notify.on.includes(outcome)) return [];
  return notify.emails.map((target) => ({ subscriptionId: null, channel: 'email', target }));
}

/** After the commit. A queue that is away is no error here: the ledger is read again and again. */
export async function ringForDeliveries(
  context: Pick<AnnounceContext, 'bell' | 'log'>,
  due: readonly DueDelivery[],
): Promise<void> {
  if (due.length === 0) return;
  try {
    await context.bell.ringDeliveries(due);
  } catch (error) {
    context.log.warn({ err: error }, 'the queue is away; notifications will be dispatched again');
  }
}
