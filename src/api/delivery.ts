import { type Static, Type } from 'typebox';
import { channels, deliveryStates, jobKinds, outcomes } from '../domain/notification.ts';
import {
  choice,
  component,
  count,
  envelope,
  flag,
  object,
  ordinal,
  orNull,
  text,
  time,
  uuid,
} from './schema.ts';

const exampleTime = '2026-11-20T12:00:41.120Z';

const at = (description: string) => time(description, exampleTime);

const deliveryFields = {
  delivery_id: uuid('ID of the delivery.', '01a1f8d2-fdeb-7b52-9c1e-8a6f0d3c2e42'),
  event_id: uuid('ID of the event. It is the same for every receiver and every attempt.'),
  event_type: text('Type of the event.', 'load.completed'),
  job_id: orNull(uuid('The job that ended. Null if the event concerns no job.')),
  subscription_id: orNull(uuid('The subscription. Null if the job itself named the address.')),
  channel: choice(channels, 'How the notification is sent.'),
  target: text('The receiver.', 'https://example.com/hooks'),
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

export const delivery = component('Delivery', object(deliveryFields, 'One event for one receiver.'));
export type Delivery = Static<typeof delivery.schema>;

export const deliveryPage = envelope('DeliveryPage', delivery.ref, 'Deliveries, newest first.', {
  total_count: count('Number of deliveries that match, on all pages.'),
});

const attempt = object(
  {
    attempt: ordinal('Number of the attempt.'),
    begun_at: at('When it began.'),
    took_ms: count('Duration in milliseconds.', 41),
    status: deliveryFields.last_status,
    error: deliveryFields.last_error,
  },
  'One attempt.',
);

export const deliveryDetail = component(
  'DeliveryDetail',
  object(
    {
      ...deliveryFields,
      tries: Type.Array(attempt, { description: 'The attempts, latest first, at most 100.' }),
      body: text(
        'The JSON that webhooks carry: the same bytes on every attempt.',
        '{"type":"load.completed"}',
      ),
    },
    'A delivery with its attempts and its body.',
  ),
);
export type DeliveryDetail = Static<typeof deliveryDetail.schema>;

export const replayed = component(
  'Replayed',
  object({ count: count('Number of deliveries that are due again.') }, 'The result of a replay.'),
);

const previousSecretUntil = 'Until when webhooks are also signed with the previous secret.';

const subscriptionFields = {
  id: uuid('ID of the subscription.'),
  channel: deliveryFields.channel,
  target: deliveryFields.target,
  on: Type.Array(Type.Enum([...outcomes], { type: 'string' }), {
    description: 'Outcomes of jobs that it is notified of.',
  }),
  types: Type.Array(Type.Enum([...jobKinds], { type: 'string' }), {
    description: 'Kinds of jobs that it is notified of.',
  }),
  created_at: at('When it was created.'),
  disabled_at: orNull(at('When it was disabled. Null while it is active.'), null),
  disabled_reason: orNull(text('Why it was disabled.'), null),
  previous_secret_until: orNull(at(previousSecretUntil), null),
};

export const subscription = component(
  'Subscription',
  object(subscriptionFields, 'A receiver of notifications. Its secret is never shown.'),
);
export type Subscription = Static<typeof subscription.schema>;

export const testDelivery = component(
  'TestDelivery',
  object(
    {
      delivery_id: deliveryFields.delivery_id,
      delivered: flag('True if the ping arrived.'),
      status: deliveryFields.last_status,
      error: deliveryFields.last_error,
      took_ms: count('Duration in milliseconds.', 41),
    },
    'The result of a ping.',
  ),
);
export type TestDelivery = Static<typeof testDelivery.schema>;

const shownOnce = 'The secret that signs webhooks. It is shown only once.';

export const issuedSubscription = component(
  'IssuedSubscription',
  object(
    { ...subscriptionFields, secret: orNull(text(`${shownOnce} Null for e-mail.`, 'whsec_…')) },
    'A new subscription.',
  ),
);

export const rotatedSecret = component(
  'RotatedSecret',
  object(
    {
      id: subscriptionFields.id,
      secret: text(shownOnce, 'whsec_…'),
      previous_secret_until: time(previousSecretUntil),
    },
    'The new secret of a webhook.',
  ),
);
