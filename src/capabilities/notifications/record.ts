import { uuidv7 } from '../../base/uuid.ts';
import type { Outcome } from '../../domain/job.ts';
import type { DueTask } from '../../domain/task.ts';
import type { Database } from '../../postgres/database.ts';
import type { JobEvent } from '../../tasks/job-seam.ts';
import type { EventType, JobKind } from './api.ts';
import { insertDeliveries, queueDeliveries, type Recipient } from './delivery-store.ts';
import { findSubscribed, insertEvent, readSender } from './subscription-store.ts';

/** Body of a webhook. Mail is composed from the same body. */
export interface EventBody {
  readonly id: string;
  readonly type: EventType;
  readonly created_at: string;
  readonly environment: { readonly name: string; readonly app_token: string };
  readonly data: Readonly<Record<string, unknown>>;
}

/** Writes an event and its deliveries. Returns the tasks of the deliveries. */
export async function recordEvent(
  db: Database,
  { type, environmentId, jobId, emails, describe }: JobEvent,
): Promise<DueTask[]> {
  const [kind, outcome] = type === 'file.refused' ? ofRefusedFile : (type.split('.') as [JobKind, Outcome]);
  // If two recipients have the same address, the first is used. Only the job's own recipients
  // receive links.
  const recipients: Recipient[] = [
    ...emails.map((target) => ({ subscriptionId: null, channel: 'email' as const, target })),
    ...(await findSubscribed(db, environmentId, kind, outcome)),
  ];
  if (recipients.length === 0) return [];
  const eventId = await writeEvent(db, { environmentId, type, jobId }, await describe());
  return queueDeliveries(db, await insertDeliveries(db, eventId, recipients));
}

const ofRefusedFile = ['load', 'failed'] as const;

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
  // Every attempt sends the same bytes.
  await insertEvent(db, { ...event, eventId: body.id, body: JSON.stringify(body) });
  return body.id;
}
