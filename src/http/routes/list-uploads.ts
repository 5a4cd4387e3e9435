import type { FastifyInstance, FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { uploadRecord } from '../../api/upload.ts';
import type { System } from '../../context.ts';
import { MAX_LISTED_UPLOADS } from '../../domain/limits.ts';
import { listKeptUploads } from '../../load/uploads.ts';
import { environmentId } from '../plugins/auth.ts';
import { listQuery } from '../plugins/validation.ts';
import { named, refusals } from '../schemas/answers.ts';
import { renderUpload, tusHeaders } from '../schemas/upload-record.ts';

const listUploadsSchema = {
  operationId: 'listUploads',
  summary: 'List uploads',
  description: `The uploads of the environment that are kept, those that have not come whole among them: the latest ${MAX_LISTED_UPLOADS}, latest first. The body is a bare array.`,
  tags: ['loads'],
  headers: Type.Object(tusHeaders),
  querystring: listQuery({}),
  response: {
    200: {
      description: 'The uploads.',
      headers: named('Tus-Resumable', 'Cache-Control'),
      content: {
        'application/json': { schema: Type.Array(uploadRecord.ref, { maxItems: MAX_LISTED_UPLOADS }) },
      },
    },
    ...refusals('invalid_field', 'unsupported_version'),
  },
} satisfies FastifySchema;

export function listUploadsRoute(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'import' }, schema: listUploadsSchema } as const;
  app.get('/v1/uploads', options, async (request, reply) => {
    const uploads = await listKeptUploads(system, environmentId(request));
    return reply.send(uploads.map(renderUpload));
  });
}
