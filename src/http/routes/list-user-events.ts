import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { eventPageAnswer } from '../../api/event.ts';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import { readRangeEnd } from '../../domain/instant.ts';
import { DEFAULT_PAGE_SIZE, MAX_EVENT_NAME_BYTES, MAX_PAGE_BYTES } from '../../domain/limits.ts';
import { findArchivedUntil, isUserKnown, readUserEvents } from '../../postgres/stores/events.ts';
import { ruled, textProblem, worded } from '../../validation.ts';
import { eventPage, readEventCursor, sendEnvelope, writeEventCursor } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { listQuery } from '../plugins/validation.ts';
import { jobRefusals, named } from '../schemas/answers.ts';
import { noSuchProfile, userParameters } from './show-profile.ts';

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
