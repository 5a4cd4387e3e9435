import { type Static, Type } from 'typebox';
import { type InputError, inputError } from '../base/errors.ts';
import { readRangeEnd } from '../base/instant.ts';
import { MAX_EVENT_NAME_BYTES, MAX_ID_BYTES, MAX_PAGE_BYTES } from '../base/limits.ts';
import { nextOf } from '../base/pages.ts';
import { isUuid, optional, ruled, textProblem, worded } from '../base/validation.ts';
import type { System } from '../context.ts';
import { type Entity, entities, idColumn, namingProperties } from '../domain/entity.ts';
import { findLaterStart } from '../export/filter.ts';
import { exampleJobId } from '../http/job.ts';
import {
  askedPage,
  eventCursor,
  eventPage,
  keyCursor,
  keyPage,
  pageBytes,
  rowCursor,
  rowPage,
  sendEnvelope,
  sendJson,
} from '../http/page.ts';
import { checked, optionalNumber, pathParameter, rangeEnd, textParameter } from '../http/parameters.ts';
import { lenientQuery } from '../http/plugins/validation.ts';
import { type Call, type Route, route } from '../http/route.ts';
import { text, uuid } from '../http/schema.ts';
import { isUserKnown, readUserEvents } from '../ingest/event-store.ts';
import {
  companyPage,
  companyProfile,
  eventPageAnswer,
  profileHistory,
  userPage,
  userProfile,
} from './api.ts';
import { listProfiles, propertyProblem, readPropertyFilter, requireSegment } from './profiles.ts';
import { type ProfileKey, readChangesKeptSince, readHistory, readProfile } from './store.ts';

const maxPropertyFilters = 10;

const filters = {
  property: optional(
    Type.Array(worded(ruled(Type.String(), propertyProblem), 'property is name:value, such as plan:pro'), {
      maxItems: maxPropertyFilters,
      description: `\`name:value\`: only return profiles that have this property with this value. May be given ${maxPropertyFilters} times; all must match. \`size:120\` finds the number 120 and the string "120", \`size:"120"\` only the string. A name that contains a colon is quoted.`,
      examples: [['plan:pro', 'trial:false']],
    }),
    `property may be given ${maxPropertyFilters} times`,
  ),
  id_prefix: textParameter(
    'id_prefix',
    MAX_ID_BYTES,
    'Only return profiles whose ID begins with this text.',
    'u1',
  ),
  search: textParameter(
    'search',
    MAX_ID_BYTES,
    `Only return profiles whose ID contains this text, or one of ${namingProperties.map((name) => `\`${name}\``).join(', ')}, in capitals or not.`,
    'ada',
  ),
  job_id: Type.Optional(
    checked(
      uuid('Only return profiles that this load wrote, and no other load since.', exampleJobId),
      isUuid,
      'job_id is the ID of a job',
    ),
  ),
};

const companyQuery = lenientQuery({ ...keyPage, ...filters });

const userQuery = lenientQuery({
  ...keyPage,
  ...filters,
  company_id: textParameter('company_id', MAX_ID_BYTES, 'Only return users of this company.', 'acme'),
  segment_id: optionalNumber(
    { minimum: 1 },
    'segment_id is a whole number, from the lookup of segments',
    'Only return users who are in this segment now. The ID is that of the segment lookup.',
  ),
});

function noSuchProfile(entity: Entity, id: string): InputError {
  const details = `${idColumn[entity]}: ${id.slice(0, 100).toWellFormed()}`;
  return inputError('not_found', `There is no such ${texts[entity].one}`, details);
}

/** A text that is not a valid ID is reported as an unknown profile. */
function idParameter<const Name extends string>(name: Name, one: string, example: string) {
  const message = `There is no such ${one}`;
  const id = text(`ID of the ${one}, URL-encoded. Any ID that was accepted can be requested.`, example);
  return pathParameter(
    name,
    ruled(id, (text) => (textProblem(text, MAX_ID_BYTES) === null ? null : message)),
    message,
  );
}

const userParameters = idParameter('user_id', 'user', 'u1');

/**
 * `postPaths` are IDs that also occur in the paths of calls, such as `identify` in `POST
 * /companies/identify`. GET with such a path returns the profile with that ID or, if there is no
 * such profile, `method_not_allowed`.
 */
const texts = {
  users: {
    one: 'user',
    schema: userProfile,
    page: userPage,
    query: userQuery,
    params: userParameters,
    operations: { list: 'listUsers', show: 'showUser', history: 'listUserHistory' },
    postPaths: ['bulk_identify'],
  },
  companies: {
    one: 'company',
    schema: companyProfile,
    page: companyPage,
    query: companyQuery as unknown as typeof userQuery,
    params: idParameter('company_id', 'company', 'acme') as unknown as typeof userParameters,
    operations: { list: 'listCompanies', show: 'showCompany', history: 'listCompanyHistory' },
    postPaths: ['identify', 'bulk_identify'],
  },
} as const satisfies Record<Entity, object>;

const list = (entity: Entity): Route =>
  route({
    at: `GET /v1/${entity}`,
    operationId: texts[entity].operations.list,
    summary: `List ${entity}`,
    description: `Lists the ${entity} of the environment, sorted by ID. Filters are combined with AND. Properties are not indexed: a page searches for about a quarter of a second, so it may be short or empty and still have a next one. A cursor stays valid when profiles are added or removed; walking to the last page returns every profile once that matched all along.`,
    access: 'read',
    config: pageBytes,
    query: texts[entity].query,
    answer: { description: 'A page.', headers: ['Link'], schema: texts[entity].page.ref },
    refuses: entity === 'users' ? ['unknown_segment'] : ['invalid_cursor'],
    handle: async (call) => {
      const { reader } = call.system;
      const {
        property = [],
        company_id: companyId = null,
        segment_id,
        id_prefix: idPrefix = null,
        search = null,
        job_id: jobId = null,
      } = call.query;
      const segment =
        segment_id === undefined ? null : await requireSegment(reader.db, call.environment, segment_id);
      const properties = property.map(readPropertyFilter);
      const filter = { properties, companyId, idPrefix, search, jobId, segment };
      const request = askedPage(call.query, keyCursor);
      const page = await listProfiles(call.system, entity, call.environment, filter, request);
      const next = page.next === null ? null : keyCursor.write(page.next);
      return sendEnvelope(call, page.profiles, next);
    },
  });

function profileOf(
  entity: Entity,
  { environment, params }: Pick<Call, 'environment'> & { readonly params: object },
): ProfileKey {
  const id = (params as Readonly<Record<string, string>>)[idColumn[entity]] ?? '';
  return { entity, environmentId: environment, id };
}

const show = (entity: Entity): Route =>
  route({
    at: `GET /v1/${entity}/:${idColumn[entity]}`,
    operationId: texts[entity].operations.show,
    summary: `Show a ${texts[entity].one}`,
    description: `Returns the ${texts[entity].one} as stored now, including everything that was answered with 202 before. Returns 405 if the path takes POST and no ${texts[entity].one} has that ID.`,
    access: 'read',
    config: { trustsKnownKeys: true },
    params: texts[entity].params,
    answer: { description: `The ${texts[entity].one}.`, schema: texts[entity].schema.ref },
    refuses: ['method_not_allowed'],
    handle: async ({ system, request, reply, params, environment }) => {
      const { id } = profileOf(entity, { environment, params });
      const json = await readProfile(system.reader, entity, environment, id);
      if (json !== null) return sendJson(reply, json);
      const postPaths: readonly string[] = texts[entity].postPaths;
      if (!postPaths.includes(id)) throw noSuchProfile(entity, id);
      reply.header('allow', 'POST');
      throw inputError('method_not_allowed', `${request.method} is not allowed here`, 'allowed: POST');
    },
  });

const listHistory = (entity: Entity): Route =>
  route({
    at: `GET /v1/${entity}/:${idColumn[entity]}/history`,
    operationId: texts[entity].operations.history,
    summary: `List the changes of a ${texts[entity].one}`,
    description: `Lists the changes of the ${texts[entity].one}, newest first: when, by whom, and the ${texts[entity].one} before the change. Changes are kept for \`CHANGES_DAYS\`. Creating a ${texts[entity].one} is not listed. Of a ${texts[entity].one} whose data was deleted, only the deletion is listed.`,
    access: 'read',
    config: pageBytes,
    params: texts[entity].params,
    query: lenientQuery(rowPage),
    answer: { description: 'A page of changes.', headers: ['Link'], schema: profileHistory.ref },
    handle: async (call) => {
      const { db } = call.system.reader;
      const page = askedPage(call.query, rowCursor);
      const profile = profileOf(entity, call);
      const { id } = profile;
      const { changes, next } = await readHistory(db, profile, page);
      if (
        changes.length === 0 &&
        page.after === null &&
        !(await isKnown(call.system, entity, call.environment, id))
      )
        throw noSuchProfile(entity, id);
      return sendEnvelope(call, changes, next === null ? null : rowCursor.write(next), {
        kept_since: await readChangesKeptSince(db),
      });
    },
  });

/** A user without a profile is known if it has events. */
async function isKnown(system: System, entity: Entity, environment: number, id: string): Promise<boolean> {
  const { reader } = system;
  if (entity === 'companies') return (await readProfile(reader, entity, environment, id)) !== null;
  return isUserKnown(reader.db, environment, id);
}

const eventQuery = lenientQuery({
  ...eventPage,
  from: rangeEnd('from', 'Only return events from this day (UTC) or ISO 8601 instant on.'),
  to: rangeEnd('to', 'Only return events up to this day, inclusive, or before this instant.'),
  event_name: textParameter(
    'event_name',
    MAX_EVENT_NAME_BYTES,
    'Only return events of this name.',
    'report_shared',
  ),
});

function readRange({ from, to }: Static<typeof eventQuery>) {
  const begin = readRangeEnd(from);
  const end = readRangeEnd(to);
  if (begin !== null && end !== null && begin.start > end.start) {
    throw inputError('invalid_range', 'from is after to', 'from');
  }
  return { from: begin?.start ?? null, to: end?.after ?? null };
}

const listUserEvents = route({
  at: 'GET /v1/users/:user_id/events',
  operationId: 'listUserEvents',
  summary: 'List the events of a user',
  description:
    'Lists the events of a user, newest first. A user whom only events name has no profile, but is found here. Events that arrive while you page are not on later pages. Only events in the database are listed: `metadata.events_kept_from` says from when on these are all.',
  access: 'read',
  config: { ...pageBytes, trustsKnownKeys: true },
  params: userParameters,
  query: eventQuery,
  answer: { description: 'A page of events.', headers: ['Link'], schema: eventPageAnswer.ref },
  refuses: ['invalid_date', 'invalid_range'],
  handle: async (call) => {
    const { environment } = call;
    const { id: userId } = profileOf('users', call);
    const { event_name: eventName = null } = call.query;
    const { limit, after: before } = askedPage(call.query, eventCursor);
    const range = readRange(call.query);
    const { reader } = call.system;
    const query = { ...range, userId, eventName, limit, before, bytes: MAX_PAGE_BYTES };
    const { events, more } = await readUserEvents(reader.pool, environment, query);
    const next = nextOf(events, more, eventCursor.write);
    if (events.length === 0 && next === null && !(await isKnown(call.system, 'users', environment, userId))) {
      throw noSuchProfile('users', userId);
    }
    const keptFrom = await findLaterStart(reader.db, { ...range, datasets: ['events'], since: null });
    return sendEnvelope(call, events, next, { events_kept_from: keptFrom });
  },
});

export const profileRoutes: readonly Route[] = [
  ...entities.flatMap((entity) => [list(entity), show(entity), listHistory(entity)]),
  listUserEvents,
];
