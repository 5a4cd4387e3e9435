import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { savedMapping } from '../../api/mapping.ts';
import type { System } from '../../context.ts';
import { mappingNamePattern, mappingNameRule } from '../../domain/saved-mapping.ts';
import { renderMapping, requireMapping } from '../../load/saved-mappings.ts';
import { worded } from '../../validation.ts';
import { environmentId } from '../plugins/auth.ts';
import { jobRefusals } from '../schemas/answers.ts';

/** In the path of a mapping. */
export const mappingParameters = Type.Object({
  name: worded(
    Type.String({ pattern: mappingNamePattern, description: 'What it is called.', examples: ['customers'] }),
    `name ${mappingNameRule}`,
  ),
});

export type MappingParameters = Static<typeof mappingParameters>;

const showMappingSchema = {
  operationId: 'showMapping',
  summary: 'Show a saved mapping',
  description: 'What a load with `mapping=` of this name does.',
  tags: ['mappings'],
  params: mappingParameters,
  response: {
    200: { description: 'The mapping.', content: { 'application/json': { schema: savedMapping.ref } } },
    ...jobRefusals(),
  },
} satisfies FastifySchema;

export function showMapping(app: FastifyInstance, { db }: System): void {
  const options = { config: { scope: 'import' }, schema: showMappingSchema } as const;
  app.get<{ Params: MappingParameters }>('/v1/mappings/:name', options, async (request, reply) => {
    const mapping = await requireMapping(db, environmentId(request), request.params.name);
    return reply.send(renderMapping(mapping) satisfies Static<typeof savedMapping.schema>);
  });
}
