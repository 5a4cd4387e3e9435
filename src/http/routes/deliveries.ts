import { Type } from 'typebox';
import { deliveryDetail, deliveryPage, replayed } from '../../api/delivery.ts';
import { render } from '../../api/render.ts';
import { object } from '../../api/schema.ts';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import { DEFAULT_PAGE_SIZE } from '../../domain/limits.ts';
import { channels, deliveryStates } from '../../domain/notification.ts';
import { renderDelivery, replayDeliveries } from '../../notifications/deliveries.ts';
import {
  countDeliveries,
  listDeliveries,
  type Replay,
  readAttempts,
} from '../../postgres/stores/deliveries.ts';
import { readEventBody } from '../../postgres/stores/notifications.ts';
import { notifyQueue } from '../../tasks/task-kind.ts';
import { jobPage, pageBytes, readJobCursor, sendEnvelope, writeJobCursor } from '../page.ts';
import {
  checked,
  dateOf,
  flagParameter,
  idParameter,
  instantParameter,
  isUuid,
  optionalChoice,
  readSeveral,
  severalOf,
} from '../parameters.ts';
import { listQuery } from '../plugins/validation.ts';
import { type Route, route } from '../route.ts';

const query = listQuery({
  ...jobPage,
  state: severalOf('state', deliveryStates, 'Only return deliveries in this state.'),
  channel: optionalChoice(
    channels,
    `channel is one of ${channels.join(', ')}`,
    'Only return webhooks, or only e-mails.',
  ),
  job_id: Type.Optional(
    checked(
      Type.String({ format: 'uuid', description: 'Only return deliveries of this job.' }),
      isUuid,
      'job_id is the id of a job',
    ),
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
  description: 'Lists sent and pending notifications, newest first. Unknown parameters are refused.',
  access: 'read',
  config: pageBytes,
  query,
  answer: { description: 'A page of deliveries.', headers: ['Link'], schema: deliveryPage.ref },
  handle: async (call) => {
    const { reader } = call.system;
    const { limit = DEFAULT_PAGE_SIZE, cursor = '', state, channel, failed = false, since } = call.query;
    const filter = {
      states: readSeveral(state),
      channel,
      failed,
      jobId: call.query.job_id,
      since: dateOf(since),
      after: readJobCursor(cursor),
      limit: limit + 1,
    };
    const [found, total_count] = await Promise.all([
      listDeliveries(reader.db, call.environment, filter),
      countDeliveries(reader.db, call.environment, filter),
    ]);
    const page = found.slice(0, limit);
    const last = page.at(-1);
    return sendEnvelope(call, {
      items: page.map((each) => JSON.stringify(renderDelivery(each))),
      next: found.length > limit && last !== undefined ? writeJobCursor(last.publicId) : null,
      limit,
      more: { total_count },
    });
  },
});

const params = idParameter('delivery_id', 'delivery');

const mostTries = 100;

const show = route({
  at: 'GET /v1/deliveries/:delivery_id',
  operationId: 'showDelivery',
  summary: 'Show a delivery',
  description: 'Returns the delivery with its attempts and its body.',
  access: 'read',
  params,
  answer: { description: 'The delivery.', schema: deliveryDetail.ref },
  handle: async ({ system: { reader }, params: { delivery_id: publicId }, environment }) => {
    const [found] = await listDeliveries(reader.db, environment, { publicId, limit: 1 });
    if (found === undefined) {
      throw inputError('not_found', 'there is no such delivery', `delivery_id: ${publicId}`);
    }
    const tries = await readAttempts(reader.db, publicId, mostTries);
    return {
      ...renderDelivery(found),
      tries: tries.map(render),
      body: (await readEventBody(reader.db, environment, found.eventId)) ?? '',
    };
  },
});

const isDue = { status: 202, description: 'The deliveries are due again.', schema: replayed.ref };

async function replay(system: System, environment: number, wanted: Replay): Promise<{ count: number }> {
  const { publicIds, tasks } = await replayDeliveries(system.db, environment, wanted);
  await notifyQueue(system, tasks);
  return { count: publicIds.length };
}

const replayOne = route({
  at: 'POST /v1/deliveries/:delivery_id/replay',
  operationId: 'replayDelivery',
  summary: 'Replay a delivery',
  description:
    'Sends a delivery again, under the same ID and with as many attempts as a new one. Returns 404 if it is being sent now, or if its subscription is disabled.',
  access: 'import',
  params,
  answer: isDue,
  handle: async ({ system, params: { delivery_id: publicId }, environment }) =>
    replay(system, environment, { publicId }),
});

const replayMany = route({
  at: 'POST /v1/deliveries/replay',
  operationId: 'replayDeliveries',
  summary: 'Replay deliveries that were given up',
  description:
    'Sends all deliveries again that were created since then and given up, at most 10 000. Count them first with `GET /v1/deliveries?state=dead&since=`.',
  access: 'import',
  json: {
    schema: object(
      {
        failed_since: instantParameter(
          'Replays deliveries created since then.',
          'failed_since is a day or an instant such as 2026-11-20T12:00:00Z',
          '2026-11-20',
        ),
      },
      'Deliveries to replay.',
    ),
    examples: { day: { summary: 'Since a day', value: { failed_since: '2026-11-20' } } },
  },
  answer: isDue,
  handle: async ({ system, environment, body }) =>
    replay(system, environment, { failedSince: dateOf(body.failed_since) ?? new Date() }),
});

export const deliveryRoutes: readonly Route[] = [listRoute, show, replayOne, replayMany];
