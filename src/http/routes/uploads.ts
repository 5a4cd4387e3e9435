import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { render } from '../../api/render.ts';
import { text } from '../../api/schema.ts';
import {
  exampleUploadId,
  type Upload as UploadRecord,
  uploadOfLoad,
  uploadRecord,
} from '../../api/upload.ts';
import { inputError } from '../../domain/errors.ts';
import { MAX_LISTED_UPLOADS } from '../../domain/limits.ts';
import { appendToUpload, createUpload } from '../../load/append-upload.ts';
import { keepFileOfLoad } from '../../load/retry-load.ts';
import { listKeptUploads, removeUpload, requireUpload } from '../../load/uploads.ts';
import type { Upload } from '../../postgres/stores/uploads.ts';
import { worded } from '../../validation.ts';
import { watchClient } from '../gone-client.ts';
import { idParameter, jobParameters, mediaTypeOf } from '../parameters.ts';
import { askForBody } from '../plugins/request-body.ts';
import { type Route, route } from '../route.ts';
import { cleanFilename } from '../upload/options.ts';
import { bodyOf, uploadLimits } from '../upload/upload.ts';

/* Uploads may come in several requests, by the tus protocol. docs/decisions/http.md says why tus. */

const version = '1.0.0';

/** Prepares the scope of the routes: every answer names the version, and a request that wants another is refused. */
export function addTus(scope: FastifyInstance): void {
  scope.addHook('onRequest', async (request, reply) => {
    const wanted = request.headers['tus-resumable'];
    if (wanted === undefined || wanted === version || request.method === 'OPTIONS') return;
    reply.header('tus-version', version);
    const details = `Tus-Resumable: ${String(wanted).slice(0, 100)}`;
    throw inputError('unsupported_version', `Uploads speak version ${version} of the tus protocol`, details);
  });
  scope.addHook('onSend', async (_request, reply) => {
    reply.header('tus-resumable', version);
  });
}

const tusHeaders = {
  'Tus-Resumable': Type.Optional(text('Version of the protocol. May be left out.', version)),
};

function bytesHeader(name: string, description: string) {
  const says = { message: `${name} is a whole number of bytes`, details: name };
  return worded(Type.String({ pattern: '^\\d{1,15}$', description, examples: ['0'] }), { says });
}

function bytesOf(request: FastifyRequest, name: 'upload-length' | 'upload-offset'): number {
  return Number(request.headers[name]);
}

const renderUpload = ({ isGzip: _, ...upload }: Upload): UploadRecord => render(upload);

const uploadHeaders = ['Tus-Resumable', 'Upload-Offset', 'Upload-Length', 'Upload-Expires'] as const;

function setUploadHeaders(reply: FastifyReply, upload: Upload): FastifyReply {
  return reply
    .header('upload-offset', upload.receivedBytes)
    .header('upload-length', upload.fileSize)
    .header('upload-expires', upload.expiresAt.toUTCString());
}

const discover = route({
  at: 'OPTIONS /v1/uploads',
  operationId: 'discoverUploads',
  summary: 'Discover how files can be uploaded',
  description: 'Returns what is supported of the tus protocol 1.0, in headers. No key is required.',
  access: 'open',
  security: [],
  bodyKind: 'tus',
  answer: {
    status: 204,
    description: 'The protocol is supported.',
    headers: ['Tus-Resumable', 'Tus-Version', 'Tus-Extension', 'Tus-Max-Size'],
  },
  refuses: ['headers_too_large', 'internal_error', 'unavailable'],
  handle: async ({ system, reply }) =>
    reply
      .header('tus-version', version)
      .header('tus-extension', 'creation,expiration,termination')
      .header('tus-max-size', system.config.maxUploadBytes)
      .send(),
});

const params = idParameter('upload_id', 'upload', exampleUploadId);

const maxMediaTypeChars = 255;

const create = route({
  at: 'POST /v1/uploads',
  operationId: 'createUpload',
  summary: 'Create an upload that can be sent in several requests',
  description:
    'Reserves room for a file, by the creation extension of the tus protocol 1.0. Send the bytes to the URL in `Location`; after a broken connection, continue where the previous request stopped. The upload is kept for one day after the last bytes came.',
  access: 'import',
  bodyKind: 'tus',
  headers: {
    ...tusHeaders,
    'Upload-Length': bytesHeader('Upload-Length', 'Size of the complete file in bytes.'),
    'Upload-Metadata': Type.Optional(
      text(
        'Pairs of a name and a value in Base64, separated by commas. `filename` and `filetype` (a media type) are kept, others are ignored.',
        'filename dXNlcnMuY3N2,filetype dGV4dC9jc3Y=',
      ),
    ),
  },
  answer: {
    status: 201,
    description: 'The upload is created and empty.',
    headers: ['Location', ...uploadHeaders],
    schema: uploadRecord.ref,
  },
  refuses: ['missing_field', 'invalid_field', 'empty_file', 'unsupported_version', 'payload_too_large'],
  handle: async ({ system, request, reply, environment, base }) => {
    const metadata = readMetadata(request.headers['upload-metadata']);
    const said = {
      filename: cleanFilename(metadata.get('filename') ?? '') ?? null,
      contentType: metadata.get('filetype')?.slice(0, maxMediaTypeChars) ?? null,
      isGzip: false,
    };
    const bytes = bytesOf(request, 'upload-length');
    const upload = await createUpload(system, environment, bytes, said, uploadLimits(system.config));
    setUploadHeaders(reply, upload).header('location', `${base()}/v1/uploads/${upload.uploadId}`);
    return renderUpload(upload);
  },
});

const base64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** If a name comes twice, the last value counts. @throws InputError `invalid_field`. */
function readMetadata(header: string | string[] | undefined): Map<string, string> {
  const pairs = String(header ?? '')
    .split(',')
    .map((pair) => pair.trim())
    .filter((pair) => pair !== '');
  return new Map(
    pairs.map((pair) => {
      const [name = '', value = '', more] = pair.split(' ');
      if (more !== undefined || !base64.test(value)) {
        const message = 'Upload-Metadata has pairs of a name and its value in base64, with commas between';
        throw inputError('invalid_field', message, `Upload-Metadata: ${name.slice(0, 100)}`);
      }
      return [name, Buffer.from(value, 'base64').toString('utf8').replaceAll('\0', '')];
    }),
  );
}

const mediaType = 'application/offset+octet-stream';

const append = route({
  at: 'PATCH /v1/uploads/:upload_id',
  operationId: 'appendUpload',
  summary: 'Append to an upload',
  description:
    'Appends the bytes of the body. If the connection is lost, the bytes that came are kept: ask for the offset with `HEAD`, and continue there. The upload is complete once it has the size it was created with.',
  access: 'import',
  bodyKind: 'tus',
  params,
  headers: {
    ...tusHeaders,
    'Upload-Offset': bytesHeader('Upload-Offset', 'Offset at which the upload ends, as `HEAD` returns it.'),
  },
  content: { [mediaType]: { schema: Type.String({ format: 'binary', description: 'The bytes.' }) } },
  answer: { status: 204, description: 'The bytes are stored.', headers: uploadHeaders },
  refuses: ['missing_field', 'offset_conflict', 'unsupported_version'],
  handle: async ({ system, request, reply, params: { upload_id }, environment }) => {
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
    const [id, gone] = [upload_id, watchClient(raw)];
    return setUploadHeaders(
      reply,
      await appendToUpload(system, environment, id, appended, limits, gone),
    ).send();
  },
});

const list = route({
  at: 'GET /v1/uploads',
  operationId: 'listUploads',
  summary: 'List uploads',
  description: `Lists the kept uploads of the environment, incomplete ones included: the latest ${MAX_LISTED_UPLOADS}, latest first. The body is a bare array.`,
  access: 'import',
  bodyKind: 'tus',
  headers: tusHeaders,
  answer: {
    description: 'The uploads.',
    headers: ['Tus-Resumable', 'Cache-Control'],
    schema: Type.Array(uploadRecord.ref, { maxItems: MAX_LISTED_UPLOADS }),
  },
  refuses: ['unsupported_version'],
  handle: async ({ system, environment }) => (await listKeptUploads(system, environment)).map(renderUpload),
});

/** Reads from the primary: callers ask for what was stored a moment ago. */
const show = route({
  at: 'GET /v1/uploads/:upload_id',
  operationId: 'showUpload',
  summary: 'Show an upload',
  description: 'Returns how much of the file has come. Clients of the tus protocol ask with `HEAD`.',
  access: 'import',
  bodyKind: 'tus',
  params,
  headers: tusHeaders,
  answer: {
    description: 'The upload.',
    headers: [...uploadHeaders, 'Cache-Control'],
    schema: uploadRecord.ref,
  },
  refuses: ['unsupported_version'],
  handle: async ({ system, reply, params: { upload_id }, environment }) => {
    const upload = await requireUpload(system, environment, upload_id);
    setUploadHeaders(reply, upload);
    return renderUpload(upload);
  },
});

const remove = route({
  at: 'DELETE /v1/uploads/:upload_id',
  operationId: 'removeUpload',
  summary: 'Remove an upload',
  description: 'Removes the upload before it expires. Loads made from it keep their own files.',
  access: 'import',
  bodyKind: 'tus',
  params,
  headers: tusHeaders,
  answer: { status: 204, description: 'The upload is removed.', headers: ['Tus-Resumable'] },
  refuses: ['unsupported_version'],
  handle: async ({ system, params: { upload_id }, environment }) => {
    await removeUpload(system, environment, upload_id);
  },
});

const ofLoad = route({
  at: 'POST /v1/background_jobs/:job_id/upload',
  operationId: 'loadAgain',
  summary: 'Create an upload from the file of a load',
  description:
    'Creates an upload from the stored file of a load, to inspect and load it with other options, such as another `map`. Nothing is sent or copied. The upload expires after a day, or with the stored file.',
  access: 'import',
  params: jobParameters,
  answer: { status: 201, description: 'The upload, and how the job read it.', schema: uploadOfLoad.ref },
  refuses: ['job_expired', 'job_not_retryable'],
  handle: async ({ system, params, environment }) => {
    const { upload, options } = await keepFileOfLoad(system, environment, params.job_id);
    return { ...renderUpload(upload), options };
  },
});

export const uploadRoutes: readonly Route[] = [discover, create, append, list, show, remove, ofLoad];
