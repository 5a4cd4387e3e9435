import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { subscription, testDelivery } from '../../api/delivery.ts';
import type { System } from '../../context.ts';
import { sendTest } from '../../notifications/deliveries.ts';
import { renderSubscription } from '../../notifications/render-delivery.ts';
import { openSendContext } from '../../open-send-context.ts';
import { listSubscriptions } from '../../postgres/stores/notifications.ts';
import { environmentId } from '../plugins/auth.ts';
import { listQuery } from '../plugins/validation.ts';
import { jobRefusals, refusals } from '../schemas/answers.ts';
import { idParameter } from '../schemas/job-record.ts';

const listSubscriptionsSchema = {
  operationId: 'listSubscriptions',
  summary: 'List who is notified',
  description:
    'The subscriptions of the environment, oldest first, disabled ones too. Other parameters are refused.',
  tags: ['notifications'],
  querystring: listQuery({}),
  response: {
    200: {
      description: 'All of them.',
      content: { 'application/json': { schema: Type.Array(subscription.ref) } },
    },
    ...refusals('invalid_field'),
  },
} satisfies FastifySchema;

const parameters = idParameter('subscription_id', 'subscription');

const testSubscriptionSchema = {
  operationId: 'testSubscription',
  summary: 'Send a ping now',
  description:
    'Sends an event of type `ping`, once, and says how that went; 200 also where it did not arrive.',
  tags: ['notifications'],
  params: parameters,
  response: {
    200: { description: 'How it went.', content: { 'application/json': { schema: testDelivery.ref } } },
    ...jobRefusals(),
  },
} satisfies FastifySchema;

export function listSubscriptionsRoute(app: FastifyInstance, { reader }: System): void {
  const options = { config: { scope: 'read' }, schema: listSubscriptionsSchema } as const;
  app.get('/v1/subscriptions', options, async (request, reply) => {
    const found = await listSubscriptions(reader.db, environmentId(request));
    return reply.send(
      found.map(
        (each): Static<typeof subscription.schema> => ({
          ...renderSubscription(each),
          on: [...each.outcomes],
          types: [...each.kinds],
        }),
      ),
    );
  });
}

export function testSubscription(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'import' }, schema: testSubscriptionSchema } as const;
  app.post<{ Params: Static<typeof parameters> }>(
    '/v1/subscriptions/:subscription_id/test',
    options,
    async (request, reply) => {
      const sender = openSendContext(system);
      const { subscription_id: id } = request.params;
      const sent = await sendTest(sender, environmentId(request), id).finally(() => sender.mail.close());
      const { publicId, outcome, status, error, tookMs } = sent;
      const answer: Static<typeof testDelivery.schema> = {
        delivery_id: publicId,
        delivered: outcome === 'delivered',
        status,
        error,
        took_ms: tookMs,
      };
      return reply.send(answer);
    },
  );
}
