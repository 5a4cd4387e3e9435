import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import { contentType } from '../../export/content-type.ts';
import { findLinkedFile, type LinkedFile, openLinkedFile } from '../../export/linked-file.ts';
import { type ByteRange, readByteRange } from '../byte-range.ts';
import { namesTag } from '../entity-tag.ts';
import { downloadFileSchema } from '../schemas/download-file-schema.ts';
import { readLink } from '../schemas/file-link.ts';

/** Names no scope: it is the link that authorises, as long as the key is valid that it was given to. */
export function downloadExportFile(app: FastifyInstance, system: System): void {
  const path = '/api/v1/analytics/exports/files/:job_id/:filename';
  app.get(path, { schema: downloadFileSchema }, async (request, reply) => {
    const file = await findLinkedFile(system, readLink(request), system.config.apiKey);
    const etag = `"${file.sha256}"`;
    reply.header('etag', etag);
    if (namesTag(request.headers['if-none-match'], etag)) return reply.code(304).send();
    const range = wantedRange(request, file, etag);
    if (range === 'unsatisfiable') {
      reply.header('content-range', `bytes */${file.bytes}`);
      throw inputError('range_not_satisfiable', 'The file has no such part', `it has ${file.bytes} bytes`);
    }
    return sendFile(system, request, reply, file, range);
  });
}

/** A range of another version of the file is none: the caller gets all of this one. */
function wantedRange({ headers }: FastifyRequest, file: LinkedFile, etag: string) {
  const condition = headers['if-range'];
  return condition === undefined || condition === etag ? readByteRange(headers.range, file.bytes) : null;
}

async function sendFile(
  system: System,
  request: FastifyRequest,
  reply: FastifyReply,
  file: LinkedFile,
  range: ByteRange | null,
): Promise<FastifyReply> {
  const { start, end } = range ?? { start: 0, end: file.bytes };
  const isEmpty = request.method === 'HEAD' || start === end;
  // A stream is what Fastify leaves the length of to us.
  const body = isEmpty ? Readable.from([]) : await openLinkedFile(system, file, { start, end });
  if (range !== null) reply.code(206).header('content-range', `bytes ${start}-${end - 1}/${file.bytes}`);
  return reply
    .header('content-type', contentType(file.filename))
    .header('content-length', String(end - start))
    .header('accept-ranges', 'bytes')
    .header('content-disposition', `attachment; filename="${file.filename}"`)
    .header('cache-control', 'private, no-cache')
    .send(body);
}
