import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { exampleUploadId, type uploadRecord } from '../../api/upload.ts';
import { inputError } from '../../domain/errors.ts';
import type { Upload } from '../../postgres/stores/uploads.ts';
import { ruled, worded } from '../../validation.ts';

/* Uploads over HTTP, by the tus protocol: what its requests and answers have in common. docs/decisions/http.md says why tus. */

const version = '1.0.0';

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

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
