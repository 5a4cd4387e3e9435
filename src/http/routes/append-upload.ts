import type { FastifyInstance, FastifySchema } from 'fastify';
import { Type } from 'typebox';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import { appendToUpload } from '../../load/append-upload.ts';
import { watchClient } from '../gone-client.ts';
import { environmentId } from '../plugins/auth.ts';
import { askForBody } from '../plugins/request-body.ts';
import { mediaTypeOf } from '../request-headers.ts';
import { named, refusals } from '../schemas/answers.ts';
import {
  bytesHeader,
  bytesOf,
  describeUpload,
  tusHeaders,
  uploadIdOf,
  uploadParameters,
} from '../schemas/upload-record.ts';
import { bodyOf, uploadLimits } from '../upload/upload.ts';

const mediaType = 'application/offset+octet-stream';

const appendUploadSchema = {
  operationId: 'appendUpload',
  summary: 'Append to an upload',
  description:
    'Stores the bytes of the body behind those that have come. If the connection is lost, what had come counts: `HEAD` says where the upload ends, and another request goes on from there. It is complete when as many bytes have come as it was created for.',
  tags: ['loads'],
  params: uploadParameters,
  headers: Type.Object({
    ...tusHeaders,
    'Upload-Offset': bytesHeader('Upload-Offset', 'Where the upload ends, as `HEAD` says.'),
  }),
  body: {
    content: { [mediaType]: { schema: Type.String({ format: 'binary', description: 'The bytes.' }) } },
  },
  response: {
    204: {
      type: 'null',
      description: 'They are stored.',
      headers: named('Tus-Resumable', 'Upload-Offset', 'Upload-Length', 'Upload-Expires'),
    },
    ...refusals(
      'missing_field',
      'invalid_field',
      'not_found',
      'route_not_found',
      'upload_too_slow',
      'offset_conflict',
      'unsupported_version',
      'payload_too_large',
      'unsupported_media_type',
    ),
  },
} satisfies FastifySchema;

/** More of an upload. */
export function appendUploadRoute(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'import' }, schema: appendUploadSchema } as const;
  app.patch('/v1/uploads/:upload_id', options, async (request, reply) => {
    const { raw, headers } = request;
    const given = mediaTypeOf(headers['content-type']);
    if (given !== mediaType) {
      throw inputError('unsupported_media_type', `Send ${mediaType}`, `Content-Type: ${given}`);
    }
    const length = headers['content-length'];
    const appended = {
      offset: bytesOf(request, 'upload-offset'),
      announcedBytes: length === undefined ? null : Number(length),
      open: () => {
        askForBody(raw);
        return bodyOf(raw);
      },
    };
    const limits = uploadLimits(system.config);
    const environment = environmentId(request);
    const upload = await appendToUpload(
      system,
      environment,
      uploadIdOf(request),
      appended,
      limits,
      watchClient(raw),
    );
    return describeUpload(reply, upload).code(204).send();
  });
}
