import { Type } from 'typebox';
import { inputError } from '../../base/errors.ts';
import { takePage } from '../../base/pages.ts';
import { isUuid, optional } from '../../base/validation.ts';
import { outcomes } from '../../domain/job.ts';
import { askedPage, jobCursor, jobPage, pageBytes, sendEnvelope } from '../../http/page.ts';
import {
  checked,
  dateOf,
  flagParameter,
  idParameter,
  instantParameter,
  optionalChoice,
  readSeveral,
  severalOf,
} from '../../http/parameters.ts';
import { lenientQuery } from '../../http/plugins/validation.ts';
import { render } from '../../http/render.ts';
import { type Route, route } from '../../http/route.ts';
import { choice, listOf, object, text, uuid } from '../../http/schema.ts';
import {
  channels,
  defaultJobKinds,
  defaultOutcomes,
  deliveryDetail,
  deliveryPage,
  deliveryStates,
  formatMeaning,
  formatNames,
  issuedSubscription,
  jobKinds,
  replayed,
  subscription,
  testDelivery,
} from './api.ts';
import { openSendContext, readDeliveryPolicy } from './deliver.ts';
import { renderDelivery, renderSubscription, replayDeliveries, sendTest } from './deliveries.ts';
import { countDeliveries, listDeliveries, readAttempts } from './delivery-store.ts';
import { listSubscriptions, readEventBody } from './subscription-store.ts';
import { addSubscription, removeSubscription } from './subscriptions.ts';

const deliveryQuery = lenientQuery({
  ...jobPage,
  state: severalOf('state', deliveryStates, 'Only return deliveries in this state.'),
  channel: optionalChoice(
    channels,
    `channel is one of ${channels.join(', ')}`,
    'Only return webhooks, or only e-mails.',
  ),
  job_id: Type.Optional(
    checked(uuid('Only return deliveries of this job.'), isUuid, 'job_id is the id of a job'),
  ),
  failed: flagParameter('failed', 'Only return deliveries that were given up or whose last attempt failed.'),
  since: Type.Optional(
    instantParameter(
      'Only return deliveries created since then.',
      'since is a day or an instant such as 2026-11-20T12:00:00Z',
      '2026-11-20',
    ),
  ),
});

const listRoute = route({
  at: 'GET /v1/deliveries',
  operationId: 'listDeliveries',
  summary: 'List deliveries',
  description: 'Lists sent and pending notifications, newest first.',
  access: 'read',
  config: pageBytes,
  query: deliveryQuery,
  answer: { description: 'A page of deliveries.', headers: ['Link'], schema: deliveryPage.ref },
  handle: async (call) => {
    const { reader } = call.system;
    const { state, channel, failed = false, since } = call.query;
    const { limit, ...page } = askedPage(call.query, jobCursor);
    const filter = {
      states: readSeveral(state),
      channel,
      failed,
      jobId: call.query.job_id,
      since: dateOf(since),
      ...page,
      limit: limit + 1,
    };
    const [deliveries, total_count] = await Promise.all([
      listDeliveries(reader.db, call.environment, filter),
      countDeliveries(reader.db, call.environment, filter),
    ]);
    const { items, next } = takePage(deliveries, limit, ({ publicId }) => jobCursor.write(publicId));
    return sendEnvelope(call, items.map(renderDelivery), next, { total_count });
  },
});

const deliveryParams = idParameter('delivery_id', 'delivery');

const mostTries = 100;

const show = route({
  at: 'GET /v1/deliveries/:delivery_id',
  operationId: 'showDelivery',
  summary: 'Show a delivery',
  description: 'Returns the delivery with its attempts and its body.',
  access: 'read',
  params: deliveryParams,
  answer: { description: 'The delivery.', schema: deliveryDetail.ref },
  handle: async ({ system: { reader }, params: { delivery_id: publicId }, environment }) => {
    const [row] = await listDeliveries(reader.db, environment, { publicId, limit: 1 });
    if (row === undefined) {
      throw inputError('not_found', 'There is no such delivery', `delivery_id: ${publicId}`);
    }
    const tries = await readAttempts(reader.db, publicId, mostTries);
    return {
      ...renderDelivery(row),
      tries: tries.map(render),
      body: (await readEventBody(reader.db, environment, row.eventId)) ?? '',
    };
  },
});

const replay = route({
  at: 'POST /v1/deliveries/:delivery_id/replay',
  operationId: 'replayDelivery',
  summary: 'Replay a delivery',
  description:
    'Sends a delivery again, under the same ID and with as many attempts as a new one. Returns 404 if it is being sent now, or if its subscription is disabled.',
  access: 'import',
  params: deliveryParams,
  answer: { status: 202, description: 'The delivery is due again.', schema: replayed.ref },
  handle: async ({ system, params: { delivery_id: publicId }, environment }) => ({
    count: (await replayDeliveries(system, environment, { publicId })).length,
  }),
});

const params = idParameter('subscription_id', 'subscription');

const list = route({
  at: 'GET /v1/subscriptions',
  operationId: 'listSubscriptions',
  summary: 'List subscriptions',
  description: 'Lists the subscriptions of the environment, oldest first, including disabled ones.',
  access: 'read',
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
    return sendTest(sender, environment, id).finally(() => sender.mail.close());
  },
});

function some<const T extends string>(
  name: string,
  choices: readonly T[],
  standard: readonly T[],
  what: string,
) {
  const each = Type.Enum([...choices], { type: 'string' });
  return optional(
    listOf(`${what} Default: ${standard.join(', ')}.`, each, { minItems: 1 }),
    `${name} is a list of ${choices.join(', ')}`,
  );
}

const newSubscription = object('A receiver, and the jobs to be notified of.', {
  url: optional(text('URL of a webhook, https://…. Either this or `email`.'), 'url is a text'),
  email: optional(text('One plain e-mail address.'), 'email is a text'),
  name: optional(
    text('Name, which is unique in the environment: 1 to 63 of a-z, 0-9, _ and -. Default: none.', 'ops'),
    'name is a text',
  ),
  format: optional(choice(formatNames, formatMeaning), `format is one of ${formatNames.join(', ')}`),
  on: some('on', outcomes, defaultOutcomes, 'Outcomes of jobs to be notified of.'),
  types: some('types', jobKinds, defaultJobKinds, 'Kinds of jobs to be notified of.'),
});

const add = route({
  at: 'POST /v1/subscriptions',
  operationId: 'addSubscription',
  summary: 'Create a subscription',
  description: `Notifies a webhook or an e-mail address when jobs of the environment end.`,
  // Requires `admin`, because receivers get data about jobs.
  access: 'admin',
  json: {
    schema: newSubscription,
    examples: {
      webhook: { summary: 'A webhook', value: { url: 'https://example.com/hooks' } },
      slack: {
        summary: 'A channel of Slack',
        value: {
          name: 'ops',
          url: 'https://hooks.slack.com/services/T0/B0/x',
          format: 'slack',
          on: ['failed', 'held'],
        },
      },
      mail: { summary: 'E-mail about failures', value: { email: 'ops@example.com', on: ['failed'] } },
    },
  },
  answer: { status: 201, description: 'The subscription.', schema: issuedSubscription.ref },
  handle: async ({ system, environment, body }) => {
    const { name = null, format = 'standard', ...recipient } = body;
    const { on = defaultOutcomes, types = defaultJobKinds, ...target } = recipient;
    const wish = { ...targetOf(target), name, format, outcomes: on, kinds: types };
    const issued = await addSubscription(system, environment, wish, readDeliveryPolicy(system.config));
    return { ...renderSubscription(issued.subscription), secret: issued.secret };
  },
});

function targetOf({ url, email }: { readonly url?: string; readonly email?: string }) {
  if (url !== undefined && email === undefined) return { channel: 'webhook', target: url } as const;
  if (email !== undefined && url === undefined) return { channel: 'email', target: email } as const;
  throw inputError('invalid_field', 'url or email must be given: who is to be notified', 'url');
}

const remove = route({
  at: 'DELETE /v1/subscriptions/:subscription_id',
  operationId: 'removeSubscription',
  summary: 'Remove a subscription',
  description: `Gives up its pending deliveries. Deliveries stay listed for a while.`,
  access: 'admin',
  params,
  answer: { status: 204, description: 'The subscription is removed.' },
  handle: async ({ system, params: { subscription_id: id }, environment }) => {
    await removeSubscription(system, environment, id);
  },
});

export const notificationRoutes: readonly Route[] = [listRoute, show, replay, list, test, add, remove];
