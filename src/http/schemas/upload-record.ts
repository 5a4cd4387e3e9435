import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { inputError } from '../../domain/errors.ts';
import type { Upload } from '../../postgres/stores/uploads.ts';
import { ruled, worded } from '../../validation.ts';
import { component, orNull } from './answers.ts';

/* Uploads over HTTP, by the tus protocol: what its requests and answers have in common. docs/decisions/http.md says why tus. */

const version = '1.0.0';
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const exampleUploadId = '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c02';

const noSuchUpload = 'there is no such upload';
export const uploadParameters = Type.Object({
  upload_id: worded(
    ruled(
      Type.String({ format: 'uuid', description: 'Id of the upload.', examples: [exampleUploadId] }),
      (text) => (uuid.test(text) ? null : noSuchUpload),
    ),
    {
      says: (value) => ({
        code: 'not_found',
        message: noSuchUpload,
        details: `upload_id: ${String(value).slice(0, 100)}`,
      }),
    },
  ),
});

/** The id in the path, which the schema has let through, as we write it. */
export function uploadIdOf(request: FastifyRequest): string {
  return (request.params as Static<typeof uploadParameters>).upload_id.toLowerCase();
}

export const tusHeaders = {
  'Tus-Resumable': Type.Optional(
    Type.String({ description: 'The version of the protocol; may be left out.', examples: [version] }),
  ),
};

/** A header with a number of bytes. */
export function bytesHeader(name: string, description: string) {
  const wording = { message: `${name} is a whole number of bytes`, details: name };
  return worded(Type.String({ pattern: '^\\d{1,15}$', description, examples: ['0'] }), { says: wording });
}

/** What the header says, which the schema has let through; undefined: it is missing. */
export function bytesOf(request: FastifyRequest, name: 'upload-length' | 'upload-offset'): number {
  return Number(request.headers[name]);
}

export const uploadFields = {
  upload_id: Type.String({
    format: 'uuid',
    description: 'Names the file in `POST /v1/imports/inspect` and `POST /v1/imports`.',
    examples: [exampleUploadId],
  }),
  filename: orNull(Type.String({ description: 'As it was said; null: without a name.' })),
  content_type: orNull(Type.String({ description: 'As it was said; null: nothing was.' })),
  file_size: Type.Integer({ minimum: 1, description: 'Bytes of the whole file.' }),
  received_bytes: Type.Integer({
    minimum: 0,
    description: 'Of these, the bytes that have come: where the next request begins.',
  }),
  sha256: orNull(
    Type.String({
      pattern: '^[0-9a-f]{64}$',
      description: 'Of the file; null before it has come whole.',
    }),
  ),
  file_of: orNull(
    Type.String({ format: 'uuid', description: 'The job whose stored file it is; null: it was sent.' }),
  ),
  created_at: Type.String({ format: 'date-time', description: 'When it was created.' }),
  expires_at: Type.String({
    format: 'date-time',
    description: 'Until when it is kept: a day after the last of its bytes came.',
  }),
};

export const exampleUpload = {
  upload_id: exampleUploadId,
  filename: 'users.csv',
  content_type: 'text/csv',
  file_size: 1048576,
  received_bytes: 524288,
  sha256: null,
  file_of: null,
  created_at: '2026-11-20T11:58:59.562Z',
  expires_at: '2026-11-21T11:59:12.104Z',
};

export const uploadRecord = component(
  'Upload',
  Type.Object(uploadFields, {
    additionalProperties: false,
    description: 'A file that is kept as it was sent, or as much of it as has come.',
    examples: [exampleUpload],
  }),
);
type UploadRecord = Static<typeof uploadRecord.schema>;

export function renderUpload(upload: Upload): UploadRecord {
  return {
    upload_id: upload.uploadId,
    filename: upload.filename,
    content_type: upload.contentType,
    file_size: upload.fileSize,
    received_bytes: upload.receivedBytes,
    sha256: upload.sha256,
    file_of: upload.fileOf,
    created_at: upload.createdAt.toISOString(),
    expires_at: upload.expiresAt.toISOString(),
  };
}

/** The headers by which a client of the protocol learns of an upload. */
export function describeUpload(reply: FastifyReply, upload: Upload): FastifyReply {
  return reply
    .header('upload-offset', upload.receivedBytes)
    .header('upload-length', upload.fileSize)
    .header('upload-expires', upload.expiresAt.toUTCString());
}

/** In the scope of the routes of uploads: every answer says the version, and a request that wants another is refused. */
export function addTus(scope: FastifyInstance): void {
  scope.addHook('onRequest', async (request, reply) => {
    const wanted = request.headers['tus-resumable'];
    if (wanted === undefined || wanted === version) return;
    reply.header('tus-version', version);
    const details = `Tus-Resumable: ${String(wanted).slice(0, 100)}`;
    throw inputError('unsupported_version', `Uploads speak version ${version} of the tus protocol`, details);
  });
  scope.addHook('onSend', async (_request, reply) => {
    reply.header('tus-resumable', version);
  });
}
