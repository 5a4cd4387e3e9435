import type { FastifyInstance, FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { uploadRecord } from '../../api/upload.ts';
import type { System } from '../../context.ts';
import { requireUpload } from '../../load/uploads.ts';
import { environmentId } from '../plugins/auth.ts';
import { named, refusals } from '../schemas/answers.ts';
import {
  describeUpload,
  renderUpload,
  tusHeaders,
  uploadIdOf,
  uploadParameters,
} from '../schemas/upload-record.ts';

const showUploadSchema = {
  operationId: 'showUpload',
  summary: 'Show an upload',
  description: 'How much of it has come. A client of the tus protocol asks by `HEAD`.',
  tags: ['loads'],
  params: uploadParameters,
  headers: Type.Object(tusHeaders),
  response: {
    200: {
      description: 'The upload.',
      headers: named('Tus-Resumable', 'Upload-Offset', 'Upload-Length', 'Upload-Expires', 'Cache-Control'),
      content: { 'application/json': { schema: uploadRecord.ref } },
    },
    ...refusals('invalid_field', 'not_found', 'route_not_found', 'unsupported_version'),
  },
} satisfies FastifySchema;

/** From the primary: what was stored a moment ago is asked for. */
export function showUpload(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'import' }, schema: showUploadSchema } as const;
  app.get('/v1/uploads/:upload_id', options, async (request, reply) => {
    const upload = await requireUpload(system, environmentId(request), uploadIdOf(request));
    return describeUpload(reply, upload).send(renderUpload(upload));
  });
}
