import { Type } from 'typebox';
import { issuedSubscription, rotatedSecret, subscription, testDelivery } from '../../api/delivery.ts';
import { object } from '../../api/schema.ts';
import { inputError } from '../../domain/errors.ts';
import { defaultJobKinds, defaultOutcomes, jobKinds, outcomes } from '../../domain/notification.ts';
import { readDeliveryPolicy } from '../../notifications/deliver-notification.ts';
import { renderSubscription, sendTest } from '../../notifications/deliveries.ts';
import { addSubscription, removeSubscription, rotateSecret } from '../../notifications/subscriptions.ts';
import { openSendContext } from '../../open-send-context.ts';
import { listSubscriptions } from '../../postgres/stores/notifications.ts';
import { worded } from '../../validation.ts';
import { idParameter, optionalNumber } from '../parameters.ts';
import { listQuery } from '../plugins/validation.ts';
import { type Route, route } from '../route.ts';

const params = idParameter('subscription_id', 'subscription');

const list = route({
  at: 'GET /v1/subscriptions',
  operationId: 'listSubscriptions',
  summary: 'List subscriptions',
  description:
    'Lists the subscriptions of the environment, oldest first, including disabled ones. Unknown parameters are refused.',
  access: 'read',
  query: listQuery({}),
  answer: { description: 'All subscriptions.', schema: Type.Array(subscription.ref) },
  handle: async ({ system: { reader }, environment }) =>
    (await listSubscriptions(reader.db, environment)).map(renderSubscription),
});

const test = route({
  at: 'POST /v1/subscriptions/:subscription_id/test',
  operationId: 'testSubscription',
  summary: 'Send a ping',
  description:
    'Sends an event of type `ping` once, and returns the result. The status is 200 even if the ping did not arrive.',
  access: 'import',
  params,
  answer: { description: 'The result.', schema: testDelivery.ref },
  handle: async ({ system, params: { subscription_id: id }, environment }) => {
    const sender = openSendContext(system);
    const sent = await sendTest(sender, environment, id).finally(() => sender.mail.close());
    const { publicId, outcome, status, error, tookMs } = sent;
    return {
      delivery_id: publicId,
      delivered: outcome === 'delivered',
      status,
      error,
      took_ms: tookMs,
    };
  },
});

function some<const T extends string>(
  name: string,
  choices: readonly T[],
  standard: readonly T[],
  what: string,
) {
  const each = Type.Enum([...choices], { type: 'string' });
  return Type.Optional(
    worded(
      Type.Array(each, { minItems: 1, description: `${what} Default: ${standard.join(', ')}.` }),
      `${name} is a list of ${choices.join(', ')}`,
    ),
  );
}

const newSubscription = object(
  {
    url: Type.Optional(
      worded(
        Type.String({ description: 'URL of a webhook, https://…. Either this or `email`.' }),
        'url is a text',
      ),
    ),
    email: Type.Optional(
      worded(Type.String({ description: 'One plain e-mail address.' }), 'email is a text'),
    ),
    on: some('on', outcomes, defaultOutcomes, 'Outcomes of jobs to be notified of.'),
    types: some('types', jobKinds, defaultJobKinds, 'Kinds of jobs to be notified of.'),
  },
  'A receiver, and the jobs to be notified of.',
);

const add = route({
  at: 'POST /v1/subscriptions',
  operationId: 'addSubscription',
  summary: 'Create a subscription',
  description: `Notifies a webhook or an e-mail address when jobs of the environment end.`,
  // Data of jobs goes where an administrator says, and nobody else.
  access: 'admin',
  json: {
    schema: newSubscription,
    examples: {
      webhook: { summary: 'A webhook', value: { url: 'https://example.com/hooks' } },
      mail: { summary: 'E-mail about failures', value: { email: 'ops@example.com', on: ['failed'] } },
    },
  },
  answer: { status: 201, description: 'The subscription.', schema: issuedSubscription.ref },
  handle: async ({ system: { db, config }, environment, body }) => {
    const { on = defaultOutcomes, types = defaultJobKinds, ...target } = body;
    const wish = { ...targetOf(target), outcomes: on, kinds: types };
    const made = await addSubscription(db, environment, wish, readDeliveryPolicy(config));
    return { ...renderSubscription(made.subscription), secret: made.secret };
  },
});

function targetOf({ url, email }: { readonly url?: string; readonly email?: string }) {
  if (url !== undefined && email === undefined) return { channel: 'webhook', target: url } as const;
  if (email !== undefined && url === undefined) return { channel: 'email', target: email } as const;
  throw inputError('invalid_field', 'say who is to be notified: either url or email', 'url');
}

const rotate = route({
  at: 'POST /v1/subscriptions/:subscription_id/rotate_secret',
  operationId: 'rotateSubscriptionSecret',
  summary: 'Rotate the secret of a webhook',
  description: `Creates a new secret. Until the overlap ends, webhooks carry two signatures, one for each secret.`,
  access: 'admin',
  params,
  json: {
    schema: object(
      {
        overlap_hours: optionalNumber(
          { minimum: 0, maximum: 720, default: 24 },
          'overlap_hours is a whole number from 0 to 720',
          'Hours for which webhooks are also signed with the old secret.',
        ),
      },
      'When the old secret ends.',
    ),
    examples: { days: { summary: 'Two days to change over', value: { overlap_hours: 48 } } },
  },
  answer: { description: 'The new secret.', schema: rotatedSecret.ref },
  handle: async ({ system: { db }, params: { subscription_id: id }, environment, body }) => {
    const { secret, previousUntil } = await rotateSecret(db, environment, id, body.overlap_hours ?? 24);
    return { id, secret, previous_secret_until: previousUntil.toISOString() };
  },
});

const remove = route({
  at: 'DELETE /v1/subscriptions/:subscription_id',
  operationId: 'removeSubscription',
  summary: 'Remove a subscription',
  description: `Gives up its pending deliveries. Deliveries stay listed for a while.`,
  access: 'admin',
  params,
  answer: { status: 204, description: 'The subscription is removed.' },
  handle: async ({ system: { db }, reply, params: { subscription_id: id }, environment }) => {
    await removeSubscription(db, environment, id);
    return reply.send();
  },
});

export const subscriptionRoutes: readonly Route[] = [list, test, add, rotate, remove];
