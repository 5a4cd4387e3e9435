import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { deliveryDetail, deliveryPage, replayed } from '../../api/delivery.ts';
import { jobIdOptions } from '../../api/job.ts';
import { withExamples } from '../../api/schema.ts';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import { readInstant } from '../../domain/instant.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_BYTES } from '../../domain/limits.ts';
import { channels, deliveryStates } from '../../domain/notification.ts';
import { replayDeliveries } from '../../notifications/deliveries.ts';
import { renderDelivery } from '../../notifications/render-delivery.ts';
import {
  countDeliveries,
  listDeliveries,
  type Replay,
  readAttempts,
} from '../../postgres/stores/deliveries.ts';
import { readEventBody } from '../../postgres/stores/notifications.ts';
import { notifyQueue } from '../../tasks/task-kind.ts';
import { compileSchema, ruled, throwProblems, worded } from '../../validation.ts';
import { jobPage, readJobCursor, sendEnvelope, writeJobCursor } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { bodyBytes, readJsonObject } from '../plugins/json-body.ts';
import { listQuery } from '../plugins/validation.ts';
import { jobRefusals, named, readSeveral, refusals, severalOf } from '../schemas/answers.ts';
import { idParameter, isJobId } from '../schemas/job-record.ts';

const notAJob = 'job_id is the id of a job';

const notAnInstant = 'since is a day or an instant such as 2026-11-20T12:00:00Z';

const query = listQuery({
  ...jobPage,
  state: severalOf('state', deliveryStates, 'Only those in this state.'),
  channel: Type.Optional(
    worded(
      Type.Enum([...channels], { type: 'string', description: 'Only webhooks, or only mail.' }),
      `channel is one of ${channels.join(', ')}`,
    ),
  ),
  job_id: Type.Optional(
    worded(
      ruled(Type.String(jobIdOptions), (text) => (isJobId(text) ? null : notAJob)),
      notAJob,
    ),
  ),
  failed: Type.Optional(
    worded(
      Type.Boolean({ description: 'Only those that were given up, and those whose last attempt failed.' }),
      'failed is true or false',
    ),
  ),
  since: Type.Optional(
    worded(
      ruled(Type.String({ description: 'Only those made since then.', examples: ['2026-11-20'] }), (text) =>
        readInstant(text) === null ? notAnInstant : null,
      ),
      notAnInstant,
    ),
  ),
});

const listDeliveriesSchema = {
  operationId: 'listDeliveries',
  summary: 'List deliveries',
  description:
    'What was sent to whom, and what is still to be sent, newest first. Other parameters are refused.',
  tags: ['notifications'],
  querystring: query,
  response: {
    200: {
      description: 'A page of deliveries.',
      headers: named('Link'),
      content: { 'application/json': { schema: deliveryPage.ref } },
    },
    ...refusals('invalid_field', 'invalid_cursor'),
  },
} satisfies FastifySchema;

export function listDeliveriesRoute(app: FastifyInstance, { reader, config }: System): void {
  const options = {
    config: { scope: 'read', answerBytes: MAX_PAGE_BYTES },
    schema: listDeliveriesSchema,
  } as const;
  app.get<{ Querystring: Static<typeof query> }>('/v1/deliveries', options, async (request, reply) => {
    const {
      limit = DEFAULT_PAGE_SIZE,
      cursor = '',
      state,
      channel,
      failed = false,
      since,
      job_id: jobId,
    } = request.query;
    const environment = environmentId(request);
    const from = since === undefined ? null : new Date(readInstant(since)?.ms ?? 0);
    const filter = {
      states: readSeveral(state),
      channel,
      failed,
      jobId,
      since: from,
      after: readJobCursor(cursor),
      limit: limit + 1,
    };
    const [found, total_count] = await Promise.all([
      listDeliveries(reader.db, environment, filter),
      countDeliveries(reader.db, environment, filter),
    ]);
    const page = found.slice(0, limit);
    const last = page.at(-1);
    return sendEnvelope(request, reply, config.publicUrl, {
      items: page.map((each) => JSON.stringify(renderDelivery(each))),
      next: found.length > limit && last !== undefined ? writeJobCursor(last.publicId) : null,
      limit,
      more: { total_count },
    });
  });
}

const deliveryParameters = idParameter('delivery_id', 'delivery');

const showDeliverySchema = {
  operationId: 'showDelivery',
  summary: 'Show a delivery',
  description: 'With what each attempt was answered, and what is sent.',
  tags: ['notifications'],
  params: deliveryParameters,
  response: {
    200: { description: 'The delivery.', content: { 'application/json': { schema: deliveryDetail.ref } } },
    ...jobRefusals(),
  },
} satisfies FastifySchema;

const mostTries = 100;

export function showDelivery(app: FastifyInstance, { reader }: System): void {
  const options = { config: { scope: 'read' }, schema: showDeliverySchema } as const;
  app.get<{ Params: Static<typeof deliveryParameters> }>(
    '/v1/deliveries/:delivery_id',
    options,
    async (request, reply) => {
      const environment = environmentId(request);
      const { delivery_id: publicId } = request.params;
      const [found] = await listDeliveries(reader.db, environment, { publicId, limit: 1 });
      if (found === undefined) {
        throw inputError('not_found', 'there is no such delivery', `delivery_id: ${publicId}`);
      }
      const tries = await readAttempts(reader.db, publicId, mostTries);
      const detail: Static<typeof deliveryDetail.schema> = {
        ...renderDelivery(found),
        tries: tries.map(({ attempt, begunAt, tookMs, status, error }) => ({
          attempt,
          begun_at: begunAt.toISOString(),
          took_ms: tookMs,
          status,
          error,
        })),
        body: (await readEventBody(reader.db, environment, found.eventId)) ?? '',
      };
      return reply.send(detail);
    },
  );
}

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

const failedSinceRule = 'failed_since is a day or an instant such as 2026-11-20T12:00:00Z';

const body = Type.Object(
  {
    failed_since: worded(
      ruled(
        Type.String({
          description: 'All that were given up, of those made since then.',
          examples: ['2026-11-20'],
        }),
        (text) => (readInstant(text) === null ? failedSinceRule : null),
      ),
      failedSinceRule,
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
    if (since === null) throw inputError('invalid_field', failedSinceRule, 'failed_since');
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
