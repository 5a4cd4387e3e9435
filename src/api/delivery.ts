import { type Static, Type } from 'typebox';
import { channels, deliveryStates, jobKinds, outcomes } from '../domain/notification.ts';
import { closed, component, envelope, orNull } from './schema.ts';

const exampleTime = '2026-11-20T12:00:41.120Z';

const time = (description: string) =>
  Type.String({ format: 'date-time', description, examples: [exampleTime] });

const nothing = { examples: [null] };

const deliveryFields = {
  delivery_id: Type.String({ format: 'uuid', description: 'Its id.' }),
  event_id: Type.String({ format: 'uuid', description: 'The same for every receiver and attempt.' }),
  event_type: Type.String({ description: 'What happened.', examples: ['load.completed'] }),
  job_id: orNull(Type.String({ format: 'uuid', description: 'The job that ended; null: it is about none.' })),
  subscription_id: orNull(
    Type.String({ format: 'uuid', description: 'Whom it is for; null: the job named the address.' }),
  ),
  channel: Type.Enum([...channels], { type: 'string', description: 'How it is sent.' }),
  target: Type.String({ description: 'Where to.', examples: ['https://example.com/hooks'] }),
  state: Type.Enum([...deliveryStates], {
    type: 'string',
    description: 'pending → delivered or dead: given up. A replay makes it pending again.',
  }),
  attempts: Type.Integer({ minimum: 0, description: 'Those that were begun, also before a replay.' }),
  next_at: orNull({ ...time('When it is tried next; null: it is not pending.'), ...nothing }),
  created_at: time('When the event was written.'),
  last_attempt_at: orNull(time('When it was tried last.')),
  last_took_ms: orNull(Type.Integer({ description: 'How long that took.', examples: [41] })),
  last_status: orNull(
    Type.Integer({ description: 'What it was answered, where that is HTTP.', examples: [200] }),
  ),
  last_error: orNull(Type.String({ description: 'Why it failed; null: it went well.', ...nothing })),
  delivered_at: orNull(time('When it was delivered.')),
};

const example = {
  delivery_id: '01a1f8d2-fdeb-7b52-9c1e-8a6f0d3c2e42',
  event_id: '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01',
  event_type: 'load.completed',
  job_id: '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01',
  subscription_id: '019f3c7a-51b0-7e64-b2d8-4c9a7f1e6b03',
  channel: 'webhook',
  target: 'https://example.com/hooks',
  state: 'delivered',
  attempts: 1,
  next_at: null,
  created_at: exampleTime,
  last_attempt_at: exampleTime,
  last_took_ms: 41,
  last_status: 200,
  last_error: null,
  delivered_at: exampleTime,
};

export const delivery = component(
  'Delivery',
  Type.Object(deliveryFields, {
    ...closed,
    description: 'One event for one receiver, and how far it is.',
    examples: [example],
  }),
);
export type Delivery = Static<typeof delivery.schema>;

export const deliveryPage = envelope('DeliveryPage', delivery.ref, 'Deliveries, newest first.', {
  total_count: Type.Integer({ minimum: 0, description: 'How many match, on all pages.' }),
});
export type DeliveryPage = Static<typeof deliveryPage.schema>;

export const deliveryDetail = component(
  'DeliveryDetail',
  Type.Object(
    {
      ...deliveryFields,
      tries: Type.Array(
        Type.Object(
          {
            attempt: Type.Integer({ minimum: 1, description: 'Its number.' }),
            begun_at: time('When it was begun.'),
            took_ms: Type.Integer({ minimum: 0, description: 'How long it took.' }),
            status: deliveryFields.last_status,
            error: deliveryFields.last_error,
          },
          closed,
        ),
        { description: 'What each attempt was answered, the latest first, 100 at most.' },
      ),
      body: Type.String({ description: 'The JSON that webhooks carry, the same bytes for every attempt.' }),
    },
    {
      ...closed,
      description: 'A delivery with its attempts and what is sent.',
      examples: [
        {
          ...example,
          tries: [{ attempt: 1, begun_at: exampleTime, took_ms: 41, status: 200, error: null }],
          body: '{"type":"load.completed"}',
        },
      ],
    },
  ),
);
export type DeliveryDetail = Static<typeof deliveryDetail.schema>;

export const replayed = component(
  'Replayed',
  Type.Object(
    { count: Type.Integer({ minimum: 0, description: 'Deliveries that are due again.' }) },
    { ...closed, description: 'What is sent once more.' },
  ),
);
export type Replayed = Static<typeof replayed.schema>;

export const subscriptionFields = {
  id: Type.String({ format: 'uuid', description: 'Its id.' }),
  channel: deliveryFields.channel,
  target: deliveryFields.target,
  on: Type.Array(Type.Enum([...outcomes], { type: 'string' }), { description: 'Of which ends.' }),
  types: Type.Array(Type.Enum([...jobKinds], { type: 'string' }), { description: 'Of which jobs.' }),
  created_at: time('When it was made.'),
  disabled_at: orNull({ ...time('Since when nothing is sent there; null: it is.'), ...nothing }),
  disabled_reason: orNull(Type.String({ description: 'Why.', ...nothing })),
  previous_secret_until: orNull({
    ...time('Until when webhooks are signed by the previous secret too.'),
    ...nothing,
  }),
};

export const subscription = component(
  'Subscription',
  Type.Object(subscriptionFields, {
    ...closed,
    description: 'Who is notified of the ends of jobs; never its secret.',
  }),
);
export type Subscription = Static<typeof subscription.schema>;

export const testDelivery = component(
  'TestDelivery',
  Type.Object(
    {
      delivery_id: deliveryFields.delivery_id,
      delivered: Type.Boolean({ description: 'It arrived.' }),
      status: deliveryFields.last_status,
      error: deliveryFields.last_error,
      took_ms: Type.Integer({ minimum: 0, description: 'How long it took.', examples: [41] }),
    },
    { ...closed, description: 'How a ping went.' },
  ),
);
export type TestDelivery = Static<typeof testDelivery.schema>;

const shownOnce = 'By which webhooks are signed, this once.';

export const secret = Type.String({ description: shownOnce, examples: ['whsec_…'] });

export const issuedSubscription = component(
  'IssuedSubscription',
  Type.Object(
    {
      ...subscriptionFields,
      secret: orNull({ ...secret, description: `${shownOnce} Null: of mail.` }),
    },
    { ...closed, description: 'A subscription that was made now.' },
  ),
);
export type IssuedSubscription = Static<typeof issuedSubscription.schema>;

export const rotatedSecret = component(
  'RotatedSecret',
  Type.Object(
    {
      id: subscriptionFields.id,
      secret,
      previous_secret_until: Type.String({
        format: 'date-time',
        description: 'Until when webhooks are signed by the previous secret too.',
      }),
    },
    { ...closed, description: 'The new secret of a webhook.' },
  ),
);
export type RotatedSecret = Static<typeof rotatedSecret.schema>;
