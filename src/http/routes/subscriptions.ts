import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, type TSchema, Type } from 'typebox';
import { issuedSubscription, rotatedSecret, subscription, testDelivery } from '../../api/delivery.ts';
import { withExamples } from '../../api/schema.ts';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import { defaultJobKinds, defaultOutcomes, jobKinds, outcomes } from '../../domain/notification.ts';
import { readDeliveryPolicy } from '../../notifications/deliver-notification.ts';
import { sendTest } from '../../notifications/deliveries.ts';
import { renderSubscription } from '../../notifications/render-delivery.ts';
import { addSubscription, removeSubscription, rotateSecret } from '../../notifications/subscriptions.ts';
import { openSendContext } from '../../open-send-context.ts';
import { listSubscriptions } from '../../postgres/stores/notifications.ts';
import { compileSchema, throwProblems, worded } from '../../validation.ts';
import { environmentId, requireAdmin } from '../plugins/auth.ts';
import { bodyBytes, readJsonObject } from '../plugins/json-body.ts';
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

/* Who is notified, changed over HTTP as by `sluice notifications`. Data of jobs goes where an administrator says, and nobody else. */

const closed = { additionalProperties: false };

const admin = 'For a session of the console that was begun with ADMIN_KEY, or by a link of the command line.';

function some<T extends string>(name: string, choices: readonly T[], standard: readonly T[], what: string) {
  const each = Type.Enum([...choices], { type: 'string' });
  return Type.Optional(
    worded(
      Type.Array(each, { minItems: 1, description: `${what} Default: ${standard.join(', ')}.` }),
      `${name} is a list of ${choices.join(', ')}`,
    ),
  );
}

const newSubscription = Type.Object(
  {
    url: Type.Optional(
      worded(Type.String({ description: 'A webhook, https://…; or `email`.' }), 'url is a text'),
    ),
    email: Type.Optional(worded(Type.String({ description: 'One plain address.' }), 'email is a text')),
    on: some('on', outcomes, defaultOutcomes, 'Of which ends.'),
    types: some('types', jobKinds, defaultJobKinds, 'Of which jobs.'),
  },
  { ...closed, description: 'Who is to be notified, and of what.' },
);

const rotation = Type.Object(
  {
    overlap_hours: Type.Optional(
      worded(
        Type.Integer({
          minimum: 0,
          maximum: 720,
          default: 24,
          description: 'How long webhooks are signed by the old secret too.',
        }),
        'overlap_hours is a whole number from 0 to 720',
      ),
    ),
  },
  { ...closed, description: 'When the old secret ends.' },
);

const bodyRefusals = [
  'invalid_json',
  'missing_field',
  'invalid_field',
  'upload_too_slow',
  'payload_too_large',
  'unsupported_media_type',
] as const;

const json = (schema: TSchema) => ({ content: { 'application/json': { schema } } });

const addSubscriptionSchema = {
  operationId: 'addSubscription',
  summary: 'Notify a webhook or an address',
  description: `Of the ends of jobs of the environment that the session looks at. ${admin}`,
  tags: ['notifications'],
  body: {
    content: {
      'application/json': withExamples(newSubscription, {
        webhook: { summary: 'A webhook', value: { url: 'https://example.com/hooks' } },
        mail: { summary: 'Mail of failures', value: { email: 'ops@example.com', on: ['failed'] } },
      }),
    },
  },
  response: {
    201: { description: 'It is made.', ...json(issuedSubscription.ref) },
    ...refusals(...bodyRefusals),
  },
} satisfies FastifySchema;

const rotateSecretSchema = {
  operationId: 'rotateSubscriptionSecret',
  summary: 'Make a new secret for a webhook',
  description: `Until the overlap ends webhooks bear two signatures, one by each secret. ${admin}`,
  tags: ['notifications'],
  params: parameters,
  body: {
    content: {
      'application/json': withExamples(rotation, {
        days: { summary: 'Two days to change over', value: { overlap_hours: 48 } },
      }),
    },
  },
  response: {
    200: { description: 'The new secret.', ...json(rotatedSecret.ref) },
    ...jobRefusals(...bodyRefusals.filter((code) => code !== 'invalid_field')),
  },
} satisfies FastifySchema;

const removeSubscriptionSchema = {
  operationId: 'removeSubscription',
  summary: 'Notify somebody no more',
  description: `What waits for it is given up; its deliveries stay listed for a while. ${admin}`,
  tags: ['notifications'],
  params: parameters,
  response: { 204: { type: 'null', description: 'It is removed.' }, ...jobRefusals() },
} satisfies FastifySchema;

const any = { config: { scope: 'any' } } as const;

const findProblems = compileSchema(newSubscription);

const findRotationProblems = compileSchema(rotation);

type Parameters = Static<typeof parameters>;

export function addSubscriptionRoutes(scope: FastifyInstance, { db, config }: System): void {
  scope.post('/v1/subscriptions', { ...any, schema: addSubscriptionSchema }, async (request, reply) => {
    requireAdmin(request);
    const given = readJsonObject(bodyBytes(request));
    throwProblems(findProblems(given));
    const {
      on = defaultOutcomes,
      types = defaultJobKinds,
      ...target
    } = given as Static<typeof newSubscription>;
    const wish = { ...targetOf(target), outcomes: on, kinds: types };
    const made = await addSubscription(db, environmentId(request), wish, readDeliveryPolicy(config));
    const answer: Static<typeof issuedSubscription.schema> = {
      ...renderSubscription(made.subscription),
      on: [...made.subscription.outcomes],
      types: [...made.subscription.kinds],
      secret: made.secret,
    };
    return reply.code(201).send(answer);
  });
  scope.post<{ Params: Parameters }>(
    '/v1/subscriptions/:subscription_id/rotate_secret',
    { ...any, schema: rotateSecretSchema },
    async (request, reply) => {
      requireAdmin(request);
      const given = readJsonObject(bodyBytes(request));
      throwProblems(findRotationProblems(given));
      const { overlap_hours: overlap = 24 } = given as Static<typeof rotation>;
      const id = request.params.subscription_id.toLowerCase();
      const { secret, previousUntil } = await rotateSecret(db, environmentId(request), id, overlap);
      return reply.send({ id, secret, previous_secret_until: previousUntil.toISOString() });
    },
  );
}

function targetOf({ url, email }: { readonly url?: string; readonly email?: string }) {
  if (url !== undefined && email === undefined) return { channel: 'webhook', target: url } as const;
  if (email !== undefined && url === undefined) return { channel: 'email', target: email } as const;
  throw inputError('invalid_field', 'say who is to be notified: either url or email', 'url');
}

export function removeSubscriptionRoute(app: FastifyInstance, { db }: System): void {
  app.delete<{ Params: Parameters }>(
    '/v1/subscriptions/:subscription_id',
    { ...any, schema: removeSubscriptionSchema },
    async (request, reply) => {
      requireAdmin(request);
      await removeSubscription(db, environmentId(request), request.params.subscription_id);
      return reply.code(204).send();
    },
  );
}
