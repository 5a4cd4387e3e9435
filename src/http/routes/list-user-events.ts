import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import { readRangeEnd } from '../../domain/instant.ts';
import { DEFAULT_PAGE_SIZE, MAX_EVENT_NAME_BYTES, MAX_PAGE_BYTES } from '../../domain/limits.ts';
import { findArchivedUntil, isUserKnown, readUserEvents } from '../../postgres/stores/events.ts';
import { ruled, textProblem, worded } from '../../validation.ts';
import { envelope, eventPage, readEventCursor, sendEnvelope, writeEventCursor } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { listQuery } from '../plugins/validation.ts';
import { component, jobRefusals, named, orNull } from '../schemas/answers.ts';
import { noSuchProfile, userParameters } from './show-profile.ts';

const exampleInstant = '2026-11-20T12:34:56.123456Z';

export const storedEvent = component(
  'StoredEvent',
  Type.Object(
    {
      event_id: Type.String({ description: 'The id that its sender gave it, else ours.' }),
      event_type: Type.String({ description: '`track`, or `page_view`.', examples: ['track'] }),
      event_name: Type.String({ description: 'What happened.', examples: ['report_shared'] }),
      user_id: Type.String({ description: 'Who did it.' }),
      company_id: orNull(Type.String({ description: 'The company it is stored with; null: none.' })),
      source: Type.String({ description: 'How it came in.', examples: ['backend-http'] }),
      inserted_at: Type.String({ format: 'date-time', description: 'When it happened.' }),
      metadata: Type.Object(
        {},
        { additionalProperties: true, description: 'Its properties, with every digit they are stored with.' },
      ),
    },
    {
      additionalProperties: false,
      description: 'An event as it is stored.',
      examples: [
        {
          event_id: '01a1f8d2fdea7c7da3a45f3b5d7e9c01',
          event_type: 'track',
          event_name: 'report_shared',
          user_id: 'u1',
          company_id: 'acme',
          source: 'backend-http',
          inserted_at: exampleInstant,
          metadata: { report: 'Q3', pages: 12 },
        },
      ],
    },
  ),
);

export const eventPageAnswer = envelope('EventPage', storedEvent.ref, 'Events, newest first.', {
  archived_until: orNull(
    Type.String({
      format: 'date-time',
      description:
        'Events of the environment before this may have been moved to archives, which exports read and this list does not; null: none have.',
    }),
  ),
});

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
