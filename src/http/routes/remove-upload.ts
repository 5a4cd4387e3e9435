import type { FastifyInstance, FastifySchema } from 'fastify';
import { Type } from 'typebox';
import type { System } from '../../context.ts';
import { removeUpload } from '../../load/uploads.ts';
import { environmentId } from '../plugins/auth.ts';
import { named, refusals } from '../schemas/answers.ts';
import { tusHeaders, uploadIdOf, uploadParameters } from '../schemas/upload-record.ts';

const removeUploadSchema = {
  operationId: 'removeUpload',
  summary: 'Remove an upload',
  description:
    'Removes what has come of it, before it expires. Loads that were made of it have files of their own.',
  tags: ['loads'],
  params: uploadParameters,
  headers: Type.Object(tusHeaders),
  response: {
    204: { type: 'null', description: 'It is gone.', headers: named('Tus-Resumable') },
    ...refusals('invalid_field', 'not_found', 'route_not_found', 'unsupported_version'),
  },
} satisfies FastifySchema;

export function removeUploadRoute(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'import' }, schema: removeUploadSchema } as const;
  app.delete('/v1/uploads/:upload_id', options, async (request, reply) => {
    await removeUpload(system, environmentId(request), uploadIdOf(request));
    return reply.code(204).send();
  });
}
