import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { activity } from '../../api/event.ts';
import { companyPage, companyProfile, userPage, userProfile } from '../../api/profile.ts';
import type { System } from '../../context.ts';
import { type Entity, idColumn } from '../../domain/entity.ts';
import { inputError } from '../../domain/errors.ts';
import { isTimeZone } from '../../domain/instant.ts';
import {
  DEFAULT_PAGE_SIZE,
  MAX_ACTIVITY_DAYS,
  MAX_ID_BYTES,
  MAX_PAGE_BYTES,
  MAX_PROPERTY_FILTERS,
} from '../../domain/limits.ts';
import { countUsersOf, findArchivedUntil, isUserKnown, readActivity } from '../../postgres/stores/events.ts';
import { readProfile } from '../../postgres/stores/profiles.ts';
import { requireSegment } from '../../profiles/find-segment.ts';
import { listProfiles } from '../../profiles/list-profiles.ts';
import { propertyProblem, readPropertyFilter } from '../../profiles/property-filter.ts';
import { ruled, textProblem, worded } from '../../validation.ts';
import { keyPage, readKeyCursor, sendEnvelope, sendJson, writeKeyCursor } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { listQuery } from '../plugins/validation.ts';
import { errorAnswers, jobRefusals, named, refusals } from '../schemas/answers.ts';

const notAFilter = 'property is name:value, such as plan:pro';

const property = Type.Optional(
  worded(
    Type.Array(worded(ruled(Type.String(), propertyProblem), notAFilter), {
      maxItems: MAX_PROPERTY_FILTERS,
      description: `\`name:value\`: only those that have this property with this value. May be given ${MAX_PROPERTY_FILTERS} times; each must hold. \`size:120\` finds the number 120 and the string "120", \`size:"120"\` only the string; a name that has a colon stands in quotes.`,
      examples: [['plan:pro', 'trial:false']],
    }),
    `property may be given ${MAX_PROPERTY_FILTERS} times`,
  ),
);

const idPrefix = Type.Optional(
  worded(
    ruled(
      Type.String({ description: 'Only those whose id begins with this text.', examples: ['u1'] }),
      (text) => {
        const problem = textProblem(text, MAX_ID_BYTES);
        return problem === null ? null : `id_prefix ${problem}`;
      },
    ),
    'id_prefix is the beginning of an id',
  ),
);

const companyQuery = listQuery({ ...keyPage, property, id_prefix: idPrefix });

const userQuery = listQuery({
  ...keyPage,
  property,
  id_prefix: idPrefix,
  company_id: Type.Optional(
    worded(
      ruled(Type.String({ description: 'Only the users of this company.', examples: ['acme'] }), (text) => {
        const problem = textProblem(text, MAX_ID_BYTES);
        return problem === null ? null : `company_id ${problem}`;
      }),
      'company_id is the id of a company',
    ),
  ),
  segment_id: Type.Optional(
    worded(
      Type.Integer({
        minimum: 1,
        description: 'Only the users who are in this segment now: its id in the lookup of segments.',
      }),
      'segment_id is a whole number, from the lookup of segments',
    ),
  ),
});

const lists = {
  users: { operationId: 'listUsers', page: userPage, query: userQuery },
  companies: { operationId: 'listCompanies', page: companyPage, query: companyQuery },
} as const satisfies Record<Entity, object>;

const bySearch =
  'No index has properties: they are searched for in the order of ids, for about a second a page. A page whose time is over is short, or empty, and has a next one.';

const listProfilesSchema = (entity: Entity) => {
  const { operationId, page, query } = lists[entity];
  return {
    operationId,
    summary: `List ${entity}`,
    description: `The ${entity} of the environment, by id, page by page; filters are combined with AND. ${bySearch} A cursor stays good whatever is added or removed: who walks to the last page has met, once, each that matched all the while. Other parameters are refused.`,
    tags: ['reading'],
    querystring: query,
    response: {
      200: {
        description: 'A page.',
        headers: named('Link'),
        content: { 'application/json': { schema: page.ref } },
      },
      ...refusals(
        'invalid_field',
        'invalid_cursor',
        ...(entity === 'users' ? (['unknown_segment'] as const) : []),
      ),
    },
  } satisfies FastifySchema;
};

export function listProfilesRoute(app: FastifyInstance, system: System, entity: Entity): void {
  const options = {
    config: { scope: 'read', answerBytes: MAX_PAGE_BYTES },
    schema: listProfilesSchema(entity),
  } as const;
  app.get<{ Querystring: Static<typeof userQuery> }>(`/v1/${entity}`, options, async (request, reply) => {
    const { limit = DEFAULT_PAGE_SIZE, cursor = '', property = [], ...others } = request.query;
    const { company_id, segment_id, id_prefix = null } = others;
    const environment = environmentId(request);
    const filter = {
      properties: property.map(readPropertyFilter),
      companyId: company_id ?? null,
      idPrefix: id_prefix,
      segment:
        segment_id === undefined ? null : await requireSegment(system.reader.db, environment, segment_id),
    };
    const after = readKeyCursor(cursor);
    const page = await listProfiles(system.reader, entity, environment, filter, { limit, after });
    return sendEnvelope(request, reply, system.config.publicUrl, {
      items: page.profiles.map(({ json }) => json),
      next: page.next === null ? null : writeKeyCursor(page.next),
      limit,
    });
  });
}

/** What an entity is called in sentences, and its schema. */
const profiles = {
  users: { one: 'user', schema: userProfile, operationId: 'showUser' },
  companies: { one: 'company', schema: companyProfile, operationId: 'showCompany' },
} as const satisfies Record<Entity, object>;

export function noSuchProfile(entity: Entity, id: string): Error {
  const details = `${idColumn[entity]}: ${id.slice(0, 100).toWellFormed()}`;
  return inputError('not_found', `there is no such ${profiles[entity].one}`, details);
}

/** The id in a path. What cannot be an id is that of nobody. */
function idParameter(entity: Entity) {
  const message = `there is no such ${profiles[entity].one}`;
  const id = Type.String({
    description: `Id of the ${profiles[entity].one}, URL-encoded; any id that was taken in can be asked for.`,
    examples: [entity === 'users' ? 'u1' : 'acme'],
  });
  return worded(
    ruled(id, (text) => (textProblem(text, MAX_ID_BYTES) === null ? null : message)),
    {
      says: (value) => ({
        code: 'not_found',
        message,
        details: `${idColumn[entity]}: ${String(value).slice(0, 100).toWellFormed()}`,
      }),
    },
  );
}

export const userParameters = Type.Object({ user_id: idParameter('users') });

const companyParameters = Type.Object({ company_id: idParameter('companies') });

const showProfileSchema = (entity: Entity) => {
  const { one, schema, operationId } = profiles[entity];
  return {
    operationId,
    summary: `Show a ${one}`,
    description: `Returns the ${one} as it is stored now, including everything that was answered with 202 before. 405 if the path takes POST and no ${one} has that id.`,
    tags: ['reading'],
    params: entity === 'users' ? userParameters : companyParameters,
    response: {
      200: { description: `The ${one}.`, content: { 'application/json': { schema: schema.ref } } },
      ...jobRefusals(),
      ...errorAnswers('method_not_allowed'),
    },
  } satisfies FastifySchema;
};

/** Sibling paths that take POST only. A profile whose id is one of them is shown. */
const postPaths: Readonly<Record<Entity, readonly string[]>> = {
  users: ['bulk_identify'],
  companies: ['identify', 'bulk_identify'],
};

/** Shows one profile, as JSON that PostgreSQL wrote. */
export function showProfile(app: FastifyInstance, system: System, entity: Entity): void {
  const options = {
    config: { scope: 'read', trustsKnownKeys: true },
    schema: showProfileSchema(entity),
  } as const;
  const name = idColumn[entity];
  app.get<{ Params: Static<typeof userParameters> & Static<typeof companyParameters> }>(
    `/v1/${entity}/:${name}`,
    options,
    async (request, reply) => {
      const id = request.params[name];
      const json = await readProfile(system.reader, entity, environmentId(request), id);
      if (json !== null) return sendJson(reply, json);
      if (!postPaths[entity].includes(id)) throw noSuchProfile(entity, id);
      reply.header('allow', 'POST');
      throw inputError('method_not_allowed', `${request.method} is not allowed here`, 'allowed: POST');
    },
  );
}

const notATimeZone = 'time_zone is a name such as Europe/Berlin';

const query = listQuery({
  days: Type.Optional(
    worded(
      Type.Integer({
        minimum: 1,
        maximum: MAX_ACTIVITY_DAYS,
        default: 30,
        description: 'Days up to today whose events are counted by day.',
      }),
      `days is a whole number from 1 to ${MAX_ACTIVITY_DAYS}`,
    ),
  ),
  time_zone: Type.Optional(
    worded(
      ruled(
        Type.String({
          description: 'Whose days they are: an IANA name.',
          default: 'UTC',
          examples: ['Europe/Berlin'],
        }),
        (text) => (isTimeZone(text) ? null : notATimeZone),
      ),
      notATimeZone,
    ),
  ),
});

const activities = {
  users: { one: 'user', operationId: 'showUserActivity', params: userParameters },
  companies: { one: 'company', operationId: 'showCompanyActivity', params: companyParameters },
} as const satisfies Record<Entity, object>;

const showActivitySchema = (entity: Entity) => {
  const { one, operationId, params } = activities[entity];
  return {
    operationId,
    summary: `Sum up what a ${one} did`,
    description: `The events that are stored of the ${one}, by day and by name. Other parameters are refused.`,
    tags: ['reading'],
    params,
    querystring: query,
    response: {
      200: { description: 'The sums.', content: { 'application/json': { schema: activity.ref } } },
      ...jobRefusals(),
    },
  } satisfies FastifySchema;
};

export function showActivity(app: FastifyInstance, { reader }: System, entity: Entity): void {
  const options = { config: { scope: 'read' }, schema: showActivitySchema(entity) } as const;
  const name = idColumn[entity];
  app.get<{
    Params: Static<typeof userParameters> & Static<typeof companyParameters>;
    Querystring: Static<typeof query>;
  }>(`/v1/${entity}/:${name}/activity`, options, async (request, reply) => {
    const id = request.params[name];
    const environment = environmentId(request);
    const { days = 30, time_zone: timeZone = 'UTC' } = request.query;
    if (!(await isKnown(reader, entity, environment, id))) throw noSuchProfile(entity, id);
    const [found, users, archived_until] = await Promise.all([
      reader.inTurn(() => readActivity(reader.db, entity, environment, { id, days, timeZone })),
      entity === 'companies' ? countUsersOf(reader.db, environment, id) : null,
      findArchivedUntil(reader.db, environment),
    ]);
    const answer: Static<typeof activity.schema> = {
      events: found.events,
      is_complete: found.isComplete,
      first_event_at: found.firstAt,
      last_event_at: found.lastAt,
      days: [...found.days],
      event_names: [...found.names],
      users,
      archived_until,
    };
    return reply.send(answer);
  });
}

/** Events may come before the profile does; of a company they do not. */
async function isKnown(
  reader: System['reader'],
  entity: Entity,
  environment: number,
  id: string,
): Promise<boolean> {
  if (entity === 'users') return isUserKnown(reader.db, environment, id);
  return (await readProfile(reader, entity, environment, id)) !== null;
}
