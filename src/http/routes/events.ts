import { type Static, Type } from 'typebox';
import { eventPageAnswer } from '../../api/event.ts';
import { inputError } from '../../domain/errors.ts';
import { readRangeEnd } from '../../domain/instant.ts';
import { DEFAULT_PAGE_SIZE, MAX_EVENT_NAME_BYTES, MAX_PAGE_BYTES } from '../../domain/limits.ts';
import { findArchivedUntil, isUserKnown, readUserEvents } from '../../postgres/stores/events.ts';
import { ruled, worded } from '../../validation.ts';
import { eventPage, pageBytes, readEventCursor, sendEnvelope, writeEventCursor } from '../page.ts';
import { textParameter } from '../parameters.ts';
import { listQuery } from '../plugins/validation.ts';
import { type Route, route } from '../route.ts';
import { noSuchProfile, userParameters } from './profiles.ts';

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
  from: end('from', 'Only return events from this day (UTC) or ISO 8601 instant on.'),
  to: end('to', 'Only return events up to this day, inclusive, or before this instant.'),
  event_name: textParameter(
    'event_name',
    MAX_EVENT_NAME_BYTES,
    'Only return events of this name.',
    'report_shared',
  ),
});

function readRange({ from, to }: Static<typeof query>) {
  const [begin, end] = [readRangeEnd(from), readRangeEnd(to)];
  if (begin !== null && end !== null && begin.start > end.start) {
    throw inputError('invalid_range', 'from lies after to', 'from');
  }
  return { from: begin?.start ?? null, to: end?.after ?? null };
}

const listUserEvents = route({
  at: 'GET /v1/users/:user_id/events',
  operationId: 'listUserEvents',
  summary: 'List the events of a user',
  description:
    'Lists the events of a user, newest first. A user whom only events name has no profile, but is found here. Events that arrive while you page are not on later pages. Archived events are left out; `metadata.archived_until` says up to when events may be archived. Unknown parameters are refused.',
  access: 'read',
  config: { ...pageBytes, trustsKnownKeys: true },
  params: userParameters,
  query,
  answer: { description: 'A page of events.', headers: ['Link'], schema: eventPageAnswer.ref },
  refuses: ['invalid_date', 'invalid_range'],
  handle: async (call) => {
    const { reader } = call.system;
    const { environment } = call;
    const { user_id: userId } = call.params;
    const { limit = DEFAULT_PAGE_SIZE, cursor = '', event_name: eventName = null } = call.query;
    const [{ events, more }, archived_until] = await Promise.all([
      readUserEvents(reader, environment, {
        ...readRange(call.query),
        ...{ userId, eventName, limit, before: readEventCursor(cursor), bytes: MAX_PAGE_BYTES },
      }),
      findArchivedUntil(reader.db, environment),
    ]);
    if (events.length === 0 && !(await isUserKnown(reader.db, environment, userId))) {
      throw noSuchProfile('users', userId);
    }
    const last = events.at(-1);
    return sendEnvelope(call, {
      items: events.map(({ json }) => json),
      next: more && last !== undefined ? writeEventCursor(last) : null,
      limit,
      more: { archived_until },
    });
  },
});

export const eventRoutes: readonly Route[] = [listUserEvents];
