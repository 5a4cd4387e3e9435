import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { companyPage, userPage } from '../../api/profile.ts';
import type { System } from '../../context.ts';
import type { Entity } from '../../domain/entity.ts';
import {
  DEFAULT_PAGE_SIZE,
  MAX_ID_BYTES,
  MAX_PAGE_BYTES,
  MAX_PROPERTY_FILTERS,
} from '../../domain/limits.ts';
import { requireSegment } from '../../profiles/find-segment.ts';
import { listProfiles } from '../../profiles/list-profiles.ts';
import { propertyProblem, readPropertyFilter } from '../../profiles/property-filter.ts';
import { ruled, textProblem, worded } from '../../validation.ts';
import { keyPage, readKeyCursor, sendEnvelope, writeKeyCursor } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { listQuery } from '../plugins/validation.ts';
import { named, refusals } from '../schemas/answers.ts';

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

const kinds = {
  users: { operationId: 'listUsers', page: userPage, query: userQuery },
  companies: { operationId: 'listCompanies', page: companyPage, query: companyQuery },
} as const satisfies Record<Entity, object>;

const bySearch =
  'No index has properties: they are searched for in the order of ids, for about a second a page. A page whose time is over is short, or empty, and has a next one.';

const listProfilesSchema = (entity: Entity) => {
  const { operationId, page, query } = kinds[entity];
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
