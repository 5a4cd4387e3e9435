import { type Static, Type } from 'typebox';
import { type Outcome, outcomes } from '../../domain/job.ts';
import {
  choice,
  count,
  defineRecord,
  envelope,
  flag,
  listOf,
  object,
  ordinal,
  orNull,
  text,
  time,
  uuid,
} from '../../http/schema.ts';
import type { JobEvent } from '../../tasks/job-seam.ts';

/** `schedule` means a run of a schedule. A run has any number of jobs. */
export const jobKinds = ['load', 'export', 'schedule'] as const;
export type JobKind = (typeof jobKinds)[number];

export type EventType = JobEvent['type'] | 'ping';

export const channels = ['webhook', 'email'] as const;
export type Channel = (typeof channels)[number];

export const formatNames = ['standard', 'slack', 'teams'] as const;
export type Format = (typeof formatNames)[number];
export const formatMeaning = 'What a webhook gets: the event, or a message of Slack or Microsoft Teams.';

export const deliveryStates = ['pending', 'delivered', 'dead'] as const;
export type DeliveryState = (typeof deliveryStates)[number];

/** Excludes `cancelled`, because the person who cancelled the job knows. */
export const defaultOutcomes: readonly Outcome[] = ['completed', 'completed_with_rejects', 'held', 'failed'];

/** Excludes runs, because their jobs already send notifications. */
export const defaultJobKinds: readonly JobKind[] = ['load', 'export'];

declare module '../../postgres/columns.ts' {
  interface Known {
    notification_deliveries: { channel: Channel; state: DeliveryState };
    notification_events: { type: EventType };
    notification_subscriptions: {
      channel: Channel;
      format: Format;
      job_kinds: readonly JobKind[];
      outcomes: readonly Outcome[];
    };
  }
}

const at = (description: string) => time(description, '2026-11-20T12:00:41.120Z');

const deliveryFields = {
  delivery_id: uuid('ID of the delivery.', '01a1f8d2-fdeb-7b52-9c1e-8a6f0d3c2e42'),
  event_id: uuid('ID of the event. It is the same for every receiver and every attempt.'),
  event_type: text('Type of the event.', 'load.completed'),
  job_id: orNull(uuid('The job that ended. Null if the event concerns no job.')),
  subscription_id: orNull(uuid('The subscription. Null if the job itself named the address.')),
  channel: choice(channels, 'How the notification is sent.'),
  target: text('An e-mail address, or the scheme and host of a webhook.', 'https://example.com/***'),
  state: choice(
    deliveryStates,
    'State: pending → delivered, or dead once it is given up. A replay makes it pending again.',
    'delivered',
  ),
  attempts: count('Number of attempts begun, including those before a replay.', 1),
  next_at: orNull(at('Time of the next attempt. Null unless the delivery is pending.'), null),
  created_at: at('When the event was written.'),
  last_attempt_at: orNull(at('When the last attempt was made.')),
  last_took_ms: orNull(
    Type.Integer({ description: 'Duration of the last attempt in milliseconds.', examples: [41] }),
  ),
  last_status: orNull(
    Type.Integer({ description: 'HTTP status of the last answer, where there was one.', examples: [200] }),
  ),
  last_error: orNull(text('Why the last attempt failed. Null if it succeeded.'), null),
  delivered_at: orNull(at('When it was delivered.')),
};

const delivery = defineRecord('Delivery', 'One event for one receiver.', deliveryFields);

export const deliveryPage = envelope('DeliveryPage', delivery.ref, 'Deliveries, newest first.', {
  total_count: count('Number of deliveries that match, on all pages.'),
});

const attempt = object('One attempt.', {
  attempt: ordinal('Number of the attempt.'),
  begun_at: at('When it began.'),
  took_ms: count('Duration in milliseconds.', 41),
  status: deliveryFields.last_status,
  error: deliveryFields.last_error,
});

export const deliveryDetail = defineRecord('DeliveryDetail', 'A delivery with its attempts and its body.', {
  ...deliveryFields,
  tries: listOf('The attempts, latest first, at most 100.', attempt),
  body: text(
    'The event as JSON: the same bytes on every attempt. Chats get a message about it.',
    '{"type":"load.completed"}',
  ),
});
export type DeliveryDetail = Static<typeof deliveryDetail.schema>;

export const replayed = defineRecord('Replayed', 'The result of a replay.', {
  count: count('Number of deliveries that are due again.'),
});

const previousSecretUntil = 'Until when webhooks are also signed with the previous secret.';

const subscriptionFields = {
  id: uuid('ID of the subscription.'),
  name: orNull(text('Name, which is unique in the environment. Null if it has none.', 'ops'), null),
  channel: deliveryFields.channel,
  target: deliveryFields.target,
  format: choice(formatNames, formatMeaning),
  on: listOf('Outcomes of jobs that it is notified of.', Type.Enum([...outcomes], { type: 'string' })),
  types: listOf('Kinds of jobs that it is notified of.', Type.Enum([...jobKinds], { type: 'string' })),
  created_at: at('When it was created.'),
  disabled_at: orNull(at('When it was disabled. Null while it is active.'), null),
  disabled_reason: orNull(text('Why it was disabled.'), null),
  previous_secret_until: orNull(at(previousSecretUntil), null),
};

export const subscription = defineRecord(
  'Subscription',
  'A receiver of notifications. Its secret is never shown.',
  subscriptionFields,
);

export const testDelivery = defineRecord('TestDelivery', 'The result of a ping.', {
  delivery_id: deliveryFields.delivery_id,
  delivered: flag('True if the ping arrived.'),
  status: deliveryFields.last_status,
  error: deliveryFields.last_error,
  took_ms: count('Duration in milliseconds.', 41),
});
export type TestDelivery = Static<typeof testDelivery.schema>;

const shownOnce = 'The secret that signs webhooks. It is shown only once.';

export const issuedSubscription = defineRecord('IssuedSubscription', 'A new subscription.', {
  ...subscriptionFields,
  secret: orNull(text(`${shownOnce} Null for e-mail and chats.`, 'whsec_…')),
});
