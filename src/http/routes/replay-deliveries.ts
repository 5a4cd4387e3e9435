import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { replayed } from '../../api/delivery.ts';
import { withExamples } from '../../api/schema.ts';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import { readInstant } from '../../domain/instant.ts';
import { replayDeliveries } from '../../notifications/deliveries.ts';
import type { Replay } from '../../postgres/stores/deliveries.ts';
import { notifyQueue } from '../../tasks/task-kind.ts';
import { compileSchema, ruled, throwProblems, worded } from '../../validation.ts';
import { environmentId } from '../plugins/auth.ts';
import { bodyBytes, readJsonObject } from '../plugins/json-body.ts';
import { jobRefusals, refusals } from '../schemas/answers.ts';
import { deliveryParameters } from './list-deliveries.ts';

const answer = {
  description: 'They are due again.',
  content: { 'application/json': { schema: replayed.ref } },
};

const replayDeliverySchema = {
  operationId: 'replayDelivery',
  summary: 'Send a delivery once more',
  description:
    'Under the id that it had, with as many attempts as a new one. One that is being sent now, or whose subscription sends no more, is 404.',
  tags: ['notifications'],
  params: deliveryParameters,
  response: { 202: answer, ...jobRefusals() },
} satisfies FastifySchema;

const notAnInstant = 'failed_since is a day or an instant such as 2026-11-20T12:00:00Z';

const body = Type.Object(
  {
    failed_since: worded(
      ruled(
        Type.String({
          description: 'All that were given up, of those made since then.',
          examples: ['2026-11-20'],
        }),
        (text) => (readInstant(text) === null ? notAnInstant : null),
      ),
      notAnInstant,
    ),
  },
  { additionalProperties: false, description: 'Which deliveries.' },
);

const findProblems = compileSchema(body);

const replayDeliveriesSchema = {
  operationId: 'replayDeliveries',
  summary: 'Send once more what was given up',
  description:
    'All deliveries that were given up since then, 10 000 at most; `GET /v1/deliveries?state=dead&since=` counts them first.',
  tags: ['notifications'],
  body: {
    content: {
      'application/json': withExamples(body, {
        day: { summary: 'Of a day', value: { failed_since: '2026-11-20' } },
      }),
    },
  },
  response: {
    202: answer,
    ...refusals(
      'invalid_json',
      'missing_field',
      'invalid_field',
      'upload_too_slow',
      'payload_too_large',
      'unsupported_media_type',
    ),
  },
} satisfies FastifySchema;

export function replayDeliveryRoutes(scope: FastifyInstance, system: System): void {
  const replay = async (environment: number, wanted: Replay): Promise<Static<typeof replayed.schema>> => {
    const { publicIds, tasks } = await replayDeliveries(system.db, environment, wanted);
    await notifyQueue(system, tasks);
    return { count: publicIds.length };
  };
  const config = { scope: 'import' } as const;
  scope.post('/v1/deliveries/replay', { config, schema: replayDeliveriesSchema }, async (request, reply) => {
    const wish = readJsonObject(bodyBytes(request));
    throwProblems(findProblems(wish));
    const since = readInstant((wish as Static<typeof body>).failed_since);
    if (since === null) throw inputError('invalid_field', notAnInstant, 'failed_since');
    return reply.code(202).send(await replay(environmentId(request), { failedSince: new Date(since.ms) }));
  });
  scope.post<{ Params: Static<typeof deliveryParameters> }>(
    '/v1/deliveries/:delivery_id/replay',
    { config, schema: replayDeliverySchema },
    async (request, reply) => {
      const { delivery_id: publicId } = request.params;
      return reply.code(202).send(await replay(environmentId(request), { publicId }));
    },
  );
}
