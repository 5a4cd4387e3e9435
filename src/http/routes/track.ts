import type { FastifyInstance, FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { withExamples } from '../../api/schema.ts';
import type { System } from '../../context.ts';
import { MAX_EVENT_NAME_BYTES } from '../../domain/limits.ts';
import { readEvent } from '../../ingest/read-record.ts';
import { commitRecord, idText, ingestAnswers, nullableId, type RecordRoute } from '../record-route.ts';
import { bodyHeaders } from '../request-headers.ts';

const instantText = (description: string) =>
  Type.Unsafe<string | number | null>({
    type: ['string', 'number', 'null'],
    pattern:
      '^(\\d{4}-\\d{2}-\\d{2}([Tt ]\\d{2}:\\d{2}(:\\d{2}([.,]\\d{1,9})?)?([Zz]|[+-]\\d{2}:?\\d{2})?)?|\\d{9,14}(\\.\\d{1,9})?)$',
    description,
    examples: ['2026-11-20T12:34:56.123456Z', 1_795_177_200],
  });

const body = Type.Object(
  {
    user_id: idText('Id of the user, who need not be known.'),
    event_name: Type.String({
      minLength: 1,
      maxLength: MAX_EVENT_NAME_BYTES,
      description: 'What happened.',
    }),
    metadata: Type.Optional(
      Type.Object(
        {},
        { additionalProperties: true, description: 'Properties of the event: any JSON values.' },
      ),
    ),
    event_id: Type.Optional(
      nullableId('Id of the event: an event of the same user that is sent again with it is kept once.'),
    ),
    insert_id: Type.Optional(nullableId('Another name of `event_id`.')),
    inserted_at: Type.Optional(
      instantText(
        'When it happened: an ISO 8601 date or instant, UTC unless it says otherwise, or seconds or milliseconds since 1970. Default: now.',
      ),
    ),
    timestamp: Type.Optional(instantText('Another name of `inserted_at`.')),
    company_id: Type.Optional(nullableId('Default: the company of the user at that moment.')),
    company: Type.Optional({
      description:
        'In place of `company_id`: an object with `company_id` or `id`. What else it has is a property.',
    }),
  },
  {
    additionalProperties: true,
    description: 'An event. Keys beside the documented ones are properties too.',
  },
);

const trackSchema = {
  operationId: 'trackEvent',
  summary: 'Track an event',
  description: 'Records one event of a user. Answered when it is committed.',
  tags: ['ingestion'],
  headers: Type.Object(bodyHeaders),
  body: {
    content: {
      'application/json': withExamples(body, {
        event: {
          summary: 'An event that happens now',
          value: {
            user_id: 'u1',
            event_name: 'report_exported',
            metadata: { format: 'csv', rows: 1200, filters: ['plan'] },
          },
        },
        backdated: {
          summary: 'An event that happened before, safe to send again',
          value: {
            user_id: 'u1',
            event_name: 'logged_in',
            event_id: '5f0c6a4e',
            inserted_at: '2026-11-20T12:34:56.123456Z',
          },
        },
      }),
    },
  },
  response: ingestAnswers('invalid_date'),
} satisfies FastifySchema;

/** One event. */
export function track(scope: FastifyInstance, system: System): void {
  const route: RecordRoute<ReturnType<typeof readEvent>> = {
    name: 'track',
    entity: 'events',
    read: readEvent,
    commit: (record, idempotency) => system.ingest.track(record, idempotency),
  };
  scope.post('/v1/track', { config: { scope: 'ingest' }, schema: trackSchema }, (request, reply) =>
    commitRecord(system, route, request, reply),
  );
}
