import type { FastifyInstance, FastifySchema } from 'fastify';
import type { System } from '../../context.ts';
import { dropMapping } from '../../load/saved-mappings.ts';
import { environmentId } from '../plugins/auth.ts';
import { jobRefusals } from '../schemas/answers.ts';
import { type MappingParameters, mappingParameters } from './show-mapping.ts';

const deleteMappingSchema = {
  operationId: 'deleteMapping',
  summary: 'Delete a saved mapping',
  description: 'Loads that were accepted with it go on as they were asked for.',
  tags: ['mappings'],
  params: mappingParameters,
  response: { 204: { type: 'null', description: 'It is gone.' }, ...jobRefusals() },
} satisfies FastifySchema;

export function deleteMapping(app: FastifyInstance, { db }: System): void {
  const options = { config: { scope: 'import' }, schema: deleteMappingSchema } as const;
  app.delete<{ Params: MappingParameters }>('/v1/mappings/:name', options, async (request, reply) => {
    await dropMapping(db, environmentId(request), request.params.name);
    return reply.code(204).send();
  });
}
