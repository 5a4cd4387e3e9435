import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { eventPageAnswer } from '../../api/event.ts';
import { withExamples } from '../../api/schema.ts';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import { readRangeEnd } from '../../domain/instant.ts';
import { DEFAULT_PAGE_SIZE, MAX_EVENT_NAME_BYTES, MAX_PAGE_BYTES } from '../../domain/limits.ts';
import { readEvent } from '../../ingest/read-record.ts';
import { findArchivedUntil, isUserKnown, readUserEvents } from '../../postgres/stores/events.ts';
import { ruled, textProblem, worded } from '../../validation.ts';
import { eventPage, readEventCursor, sendEnvelope, writeEventCursor } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { listQuery } from '../plugins/validation.ts';
import { commitRecord, idText, ingestAnswers, nullableId, type RecordRoute } from '../record-route.ts';
import { bodyHeaders } from '../request-headers.ts';
import { jobRefusals, named } from '../schemas/answers.ts';
import { noSuchProfile, userParameters } from './profiles.ts';

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

function end(name: 'from' | 'to', description: string) {
  const message = `${name} must be a day such as 2026-11-20, or an ISO 8601 instant such as 2026-11-20T12:00:00Z`;
  const text = Type.String({ description, examples: ['2026-11-20'] });
  return Type.Optional(
    worded(
      ruled(text, (value) => (readRangeEnd(value) === null ? message : null)),
      { says: { code: 'invalid_date', message } },
    ),
  );
}

const query = listQuery({
  ...eventPage,
  from: end('from', 'Only events from this day of UTC, or this ISO 8601 instant, on.'),
  to: end('to', 'Only events up to this day, which is included, or this instant, which is not.'),
  event_name: Type.Optional(
    worded(
      ruled(
        Type.String({ description: 'Only events of this name.', examples: ['report_shared'] }),
        (text) => {
          const problem = textProblem(text, MAX_EVENT_NAME_BYTES);
          return problem === null ? null : `event_name ${problem}`;
        },
      ),
      'event_name is the name of an event',
    ),
  ),
});

const listUserEventsSchema = {
  operationId: 'listUserEvents',
  summary: 'List the events of a user',
  description:
    'Newest first, page by page. A user whom only events name has no profile, and events all the same. What happens while the pages are walked is not on later ones. Events that were moved to archives are not in the list: `metadata.archived_until` says up to when that may be. Other parameters are refused.',
  tags: ['reading'],
  params: userParameters,
  querystring: query,
  response: {
    200: {
      description: 'A page of events.',
      headers: named('Link'),
      content: { 'application/json': { schema: eventPageAnswer.ref } },
    },
    ...jobRefusals('invalid_cursor', 'invalid_date', 'invalid_range'),
  },
} satisfies FastifySchema;

export function listUserEvents(app: FastifyInstance, { reader, config }: System): void {
  const options = {
    config: { scope: 'read', trustsKnownKeys: true, answerBytes: MAX_PAGE_BYTES },
    schema: listUserEventsSchema,
  } as const;
  app.get<{ Params: Static<typeof userParameters>; Querystring: Static<typeof query> }>(
    '/v1/users/:user_id/events',
    options,
    async (request, reply) => {
      const { user_id: userId } = request.params;
      const { limit = DEFAULT_PAGE_SIZE, cursor = '', event_name: eventName = null } = request.query;
      const environment = environmentId(request);
      const [{ events, more }, archived_until] = await Promise.all([
        readUserEvents(reader, environment, {
          ...readRange(request.query),
          ...{ userId, eventName, limit, before: readEventCursor(cursor), bytes: MAX_PAGE_BYTES },
        }),
        findArchivedUntil(reader.db, environment),
      ]);
      if (events.length === 0 && !(await isUserKnown(reader.db, environment, userId))) {
        throw noSuchProfile('users', userId);
      }
      const last = events.at(-1);
      return sendEnvelope(request, reply, config.publicUrl, {
        items: events.map(({ json }) => json),
        next: more && last !== undefined ? writeEventCursor(last) : null,
        limit,
        more: { archived_until },
      });
    },
  );
}

/** @throws InputError `invalid_range`. */
function readRange({ from, to }: Static<typeof query>): {
  readonly from: string | null;
  readonly to: string | null;
} {
  const [begin, end] = [readRangeEnd(from), readRangeEnd(to)];
  if (begin !== null && end !== null && begin.start > end.start) {
    throw inputError('invalid_range', 'from lies after to', 'from');
  }
  return { from: begin?.start ?? null, to: end?.after ?? null };
}
