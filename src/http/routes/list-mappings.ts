import type { FastifyInstance, FastifySchema } from 'fastify';
import type { Static } from 'typebox';
import { type mappingItem, mappingPage } from '../../api/mapping.ts';
import type { System } from '../../context.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_BYTES } from '../../domain/limits.ts';
import { renderListedMapping } from '../../load/saved-mappings.ts';
import { listMappings } from '../../postgres/stores/mappings.ts';
import { keyPage, readKeyCursor, sendEnvelope, writeKeyCursor } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { listQuery } from '../plugins/validation.ts';
import { named, refusals } from '../schemas/answers.ts';

const query = listQuery(keyPage);

const listMappingsSchema = {
  operationId: 'listMappings',
  summary: 'List saved mappings',
  description: 'Those of the environment, by name, page by page.',
  tags: ['mappings'],
  querystring: query,
  response: {
    200: {
      description: 'A page of mappings.',
      headers: named('Link'),
      content: { 'application/json': { schema: mappingPage.ref } },
    },
    ...refusals('invalid_field', 'invalid_cursor'),
  },
} satisfies FastifySchema;

export function listMappingsRoute(app: FastifyInstance, system: System): void {
  const options = {
    config: { scope: 'import', answerBytes: MAX_PAGE_BYTES },
    schema: listMappingsSchema,
  } as const;
  app.get<{ Querystring: Static<typeof query> }>('/v1/mappings', options, async (request, reply) => {
    const { limit = DEFAULT_PAGE_SIZE, cursor = '' } = request.query;
    const after = readKeyCursor(cursor);
    const found = await listMappings(system.db, environmentId(request), limit + 1, after);
    const page = found.slice(0, limit);
    const last = page.at(-1);
    return sendEnvelope(request, reply, system.config.publicUrl, {
      items: page.map((each) =>
        JSON.stringify(renderListedMapping(each) satisfies Static<typeof mappingItem.schema>),
      ),
      next: found.length > limit && last !== undefined ? writeKeyCursor(last.name) : null,
      limit,
    });
  });
}
