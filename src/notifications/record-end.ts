import type { InboxReason } from '../domain/inbox.ts';
import type { EventType, JobKind, Outcome } from '../domain/notification.ts';
import type { DueTask } from '../domain/task.ts';
import type { Database } from '../postgres/database.ts';
import { insertDeliveries, queueDeliveries, type Recipient } from '../postgres/stores/deliveries.ts';
import { findSubscribed, insertEvent, readSender } from '../postgres/stores/notifications.ts';
import { uuidv7 } from '../uuid.ts';

/** The end of a job, or of a run of a schedule, in the transaction that ends it. */
interface EndedJob {
  readonly kind: JobKind;
  readonly environmentId: number;
  /** The job; null for a run. */
  readonly jobId: string | null;
  readonly outcome: Outcome;
  /** Addresses that the job or run itself names for this outcome. */
  readonly emails: readonly string[];
  /** The job as the API renders it, or the run; only called if there are recipients. */
  readonly describe: () => Promise<object>;
}

/** The body of a webhook, from which mail is composed too. */
export interface EventBody {
  readonly id: string;
  readonly type: EventType;
  readonly created_at: string;
  readonly environment: { readonly name: string; readonly app_token: string };
  readonly data: Readonly<Record<string, unknown>>;
}

/**
 * Writes the event and its deliveries; call it in the transaction that ends the job, so that neither exists without the
 * other, and pass what it returns to `notifyQueue` after the commit. Writes nothing if there are no recipients.
 */
export async function recordEnd(db: Database, job: EndedJob): Promise<DueTask[]> {
  const { kind, environmentId, jobId, outcome } = job;
  // An address that comes twice gets the first: the one that the job names, which has links to an export's files.
  const recipients: Recipient[] = [
    ...job.emails.map((target) => ({ subscriptionId: null, channel: 'email' as const, target })),
    ...(await findSubscribed(db, environmentId, kind, outcome)),
  ];
  if (recipients.length === 0) return [];
  const event = { environmentId, type: `${kind}.${outcome}`, jobId } as const;
  const eventId = await writeEvent(db, event, await job.describe());
  return queueDeliveries(db, await insertDeliveries(db, eventId, recipients));
}

/** The data of `file.refused`: a file that the inbox could not load. */
export interface RefusedFile {
  readonly file_id: string;
  /** Below the folder of the environment, such as `users/nightly.csv`. */
  readonly file: string;
  readonly size: number;
  readonly sha256: string | null;
  readonly reasons: readonly InboxReason[];
}

/** Writes the event of a refused file and its deliveries. Call it in the transaction that refuses the file, as `recordEnd`. */
export async function recordRefusedFile(
  db: Database,
  environmentId: number,
  file: RefusedFile,
): Promise<DueTask[]> {
  const recipients = await findSubscribed(db, environmentId, 'load', 'failed');
  if (recipients.length === 0) return [];
  const eventId = await writeEvent(db, { environmentId, type: 'file.refused', jobId: null }, file);
  return queueDeliveries(db, await insertDeliveries(db, eventId, recipients));
}

/** Writes an event; its time is the transaction's. Returns its id. */
export async function writeEvent(
  db: Database,
  event: { readonly environmentId: number; readonly type: EventType; readonly jobId: string | null },
  data: object,
): Promise<string> {
  const { name, appToken, now } = await readSender(db, event.environmentId);
  const body: EventBody = {
    id: uuidv7(),
    type: event.type,
    created_at: now.toISOString(),
    environment: { name, app_token: appToken },
    data: data as EventBody['data'],
  };
  // The text is written once, so that every attempt sends the same bytes.
  await insertEvent(db, { ...event, eventId: body.id, body: JSON.stringify(body) });
  return body.id;
}
