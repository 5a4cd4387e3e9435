import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type TString, Type } from 'typebox';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import {
  contentType,
  findLinkedFile,
  type LinkedFile,
  noSuchLink,
  openLinkedFile,
} from '../../export/file-links.ts';
import { ruled, worded } from '../../validation.ts';
import { named } from '../answers.ts';
import { conditionHeaders, namesTag } from '../request-headers.ts';
import { type Route, route } from '../route.ts';

const bytes = {
  schema: Type.String({ format: 'binary', description: 'The file, or the requested part of it.' }),
};

const manifest = {
  schema: Type.Any({
    description: 'The manifest, or the requested part of it.',
    examples: [{ rows: { users: 1200 } }],
  }),
};

const content = {
  'application/gzip': bytes,
  'application/x-ndjson': bytes,
  'text/csv': bytes,
  'application/vnd.apache.parquet': bytes,
  'application/avro': bytes,
  'application/json': manifest,
};

const fileHeaders = ['ETag', 'Accept-Ranges', 'Content-Disposition', 'Cache-Control'] as const;

/** Whatever is wrong with a link, the answer is the same. A link that is not written as we write them is not ours. */
const noSuchFile = { says: noSuchLink, whole: true } as const;

const of = (form: RegExp, schema: TString) =>
  ruled(schema, (text) => (form.test(text) ? null : noSuchLink.message));

const fromLink = () => Type.String({ description: 'From the link.' });

const params = worded(
  Type.Object({
    job_id: of(
      /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
      Type.String({ format: 'uuid', description: 'ID of the export.' }),
    ),
    // PostgreSQL would refuse to look for U+0000.
    filename: of(
      /^[^\0]*$/,
      Type.String({ description: 'Name of the file.', examples: ['users.ndjson.gz'] }),
    ),
  }),
  noSuchFile,
);

const query = worded(
  Type.Object({
    expires: of(/^[1-9]\d{0,11}$/, fromLink()),
    key: Type.Optional(of(/^\w{1,64}$/, fromLink())),
    signature: fromLink(),
  }),
  noSuchFile,
);

const download = route({
  at: 'GET /api/v1/analytics/exports/files/:job_id/:filename',
  operationId: 'downloadExportFile',
  summary: 'Download a file of an export',
  description:
    'Serves the links of an export. No key is required: the link itself authorises, until it expires or the key that requested it is revoked or expires. `Range` (one range), `If-Range` and `If-None-Match` are supported; the ETag is the SHA-256 of the file.',
  access: 'open',
  security: [],
  params,
  query,
  headers: {
    Range: Type.Optional(
      Type.String({ description: 'The requested part: one range of bytes.', examples: ['bytes=1048576-'] }),
    ),
    'If-Range': Type.Optional(
      Type.String({
        description: 'ETag of the file that the part belongs to. If the file is another, all of it is sent.',
      }),
    ),
    ...conditionHeaders,
  },
  answer: { description: 'The file.', headers: fileHeaders, content },
  answers: {
    206: { description: 'A part of the file.', headers: named(...fileHeaders, 'Content-Range'), content },
    304: { type: 'null', description: 'The caller has the file already.', headers: named('ETag') },
  },
  refuses: [
    'link_expired',
    'job_expired',
    'range_not_satisfiable',
    'rate_limited',
    'internal_error',
    'unavailable',
  ],
  handle: async ({ system, request, reply, params: { job_id: jobId, filename }, query }) => {
    const { expires, key: keyId = null, signature } = query;
    const link = { jobId, filename, expires, keyId, signature };
    const file = await findLinkedFile(system, link, system.config.apiKey);
    const etag = `"${file.sha256}"`;
    reply.header('etag', etag);
    if (namesTag(request.headers['if-none-match'], etag)) return reply.code(304).send();
    const range = wantedRange(request, file, etag);
    if (range === 'unsatisfiable') {
      reply.header('content-range', `bytes */${file.bytes}`);
      throw inputError('range_not_satisfiable', 'The file has no such part', `it has ${file.bytes} bytes`);
    }
    return sendFile(system, request, reply, file, range);
  },
});

/** A range of another version of the file does not count: the caller gets all of this one. */
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
  // For a stream, Fastify leaves the length to us.
  const body = isEmpty ? Readable.from([]) : await openLinkedFile(system, file, { start, end });
  if (range !== null) reply.code(206).header('content-range', `bytes ${start}-${end - 1}/${file.bytes}`);
  return reply
    .header('content-type', contentType(file.filename))
    .header('content-length', String(end - start))
    .header('accept-ranges', 'bytes')
    .header('content-disposition', `attachment; filename="${file.filename}"`)
    .send(body);
}

interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Reads a `Range` header for a file of `bytes` bytes. Returns `null` for the whole file, also if the header names several parts or
 * cannot be read, which a server may ignore. By hand and not by range-parser, which refuses what RFC 9110 wants answered: a suffix
 * longer than the file, which is the whole file, and a range that ends before it begins, which is none.
 */
function readByteRange(header: string | undefined, bytes: number): ByteRange | null | 'unsatisfiable' {
  const match = /^bytes=\s*(\d*)-(\d*)\s*$/i.exec(header ?? '');
  const [, first = '', last = ''] = match ?? [];
  if (first === '' && last === '') return null;
  if (first === '') {
    if (Number(last) === 0 || bytes === 0) return 'unsatisfiable';
    return { start: Math.max(0, bytes - Number(last)), end: bytes };
  }
  const [start, end] = [Number(first), last === '' ? bytes : Math.min(Number(last) + 1, bytes)];
  if (last !== '' && Number(last) < start) return null;
  return start < bytes ? { start, end } : 'unsatisfiable';
}

export const exportFileRoutes: readonly Route[] = [download];
