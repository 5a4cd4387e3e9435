import type { FastifyInstance, FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { uploadRecord } from '../../api/upload.ts';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import { MAX_LISTED_UPLOADS } from '../../domain/limits.ts';
import { appendToUpload, createUpload } from '../../load/append-upload.ts';
import { listKeptUploads, removeUpload, requireUpload } from '../../load/uploads.ts';
import { watchClient } from '../gone-client.ts';
import { baseUrl } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { askForBody } from '../plugins/request-body.ts';
import { listQuery } from '../plugins/validation.ts';
import { mediaTypeOf } from '../request-headers.ts';
import { named, refusals } from '../schemas/answers.ts';
import {
  bytesHeader,
  bytesOf,
  describeUpload,
  renderUpload,
  tusHeaders,
  uploadIdOf,
  uploadParameters,
} from '../schemas/upload-record.ts';
import { cleanFilename } from '../upload/options.ts';
import { bodyOf, uploadLimits } from '../upload/upload.ts';

const createUploadSchema = {
  operationId: 'createUpload',
  summary: 'Create an upload that may come in several requests',
  description:
    'Makes room for a file, by the creation extension of the tus protocol 1.0. Its bytes are then sent to the address in `Location`, from wherever the request before broke off. It is kept for a day after the last of them.',
  tags: ['loads'],
  headers: Type.Object({
    ...tusHeaders,
    'Upload-Length': bytesHeader('Upload-Length', 'Bytes of the whole file.'),
    'Upload-Metadata': Type.Optional(
      Type.String({
        description:
          'Pairs of a name and its value in base64, with commas between: `filename` and `filetype` (a media type) are kept, others are ignored.',
        examples: ['filename dXNlcnMuY3N2,filetype dGV4dC9jc3Y='],
      }),
    ),
  }),
  response: {
    201: {
      description: 'There is room for it; nothing has come.',
      headers: named('Location', 'Tus-Resumable', 'Upload-Offset', 'Upload-Length', 'Upload-Expires'),
      content: { 'application/json': { schema: uploadRecord.ref } },
    },
    ...refusals('missing_field', 'invalid_field', 'empty_file', 'unsupported_version', 'payload_too_large'),
  },
} satisfies FastifySchema;

/** Room for a file that is sent to be inspected or loaded. */
export function createUploadRoute(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'import' }, schema: createUploadSchema } as const;
  app.post('/v1/uploads', options, async (request, reply) => {
    const metadata = readMetadata(request.headers['upload-metadata']);
    const said = {
      filename: cleanFilename(metadata.get('filename') ?? '') ?? null,
      contentType: metadata.get('filetype')?.slice(0, maxMediaTypeChars) ?? null,
      isGzip: false,
    };
    const bytes = bytesOf(request, 'upload-length');
    const upload = await createUpload(
      system,
      environmentId(request),
      bytes,
      said,
      uploadLimits(system.config),
    );
    const base = baseUrl(request, system.config.publicUrl);
    return describeUpload(reply, upload)
      .code(201)
      .header('location', `${base}/v1/uploads/${upload.uploadId}`)
      .send(renderUpload(upload));
  });
}

const maxMediaTypeChars = 255;

const base64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** Of a name that comes twice the last counts. @throws InputError `invalid_field`. */
function readMetadata(header: string | string[] | undefined): Map<string, string> {
  const pairs = String(header ?? '')
    .split(',')
    .map((pair) => pair.trim())
    .filter((pair) => pair !== '');
  return new Map(
    pairs.map((pair) => {
      const [name = '', value = '', more] = pair.split(' ');
      if (more !== undefined || !base64.test(value)) throw notMetadata(name);
      const text = Buffer.from(value, 'base64').toString('utf8');
      return [name, text.replaceAll('\0', '')];
    }),
  );
}

function notMetadata(name: string): Error {
  const message = 'Upload-Metadata has pairs of a name and its value in base64, with commas between';
  return inputError('invalid_field', message, `Upload-Metadata: ${name.slice(0, 100)}`);
}

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
