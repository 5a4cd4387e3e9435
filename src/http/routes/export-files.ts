import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifySchema } from 'fastify';
import { type Static, type TString, Type } from 'typebox';
import { jobIdOptions } from '../../api/job.ts';
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
import { conditionHeaders, namesTag } from '../request-headers.ts';
import { errorAnswers, named } from '../schemas/answers.ts';

const bytes = {
  schema: Type.String({ format: 'binary', description: 'The file, or the part of it that was asked for.' }),
};

const manifest = {
  schema: Type.Any({
    description: 'The manifest, or the part of it that was asked for.',
    examples: [{ rows: { users: 1200 } }],
  }),
};

/** By the ends of the names that exports give their files. */
const content = {
  'application/gzip': bytes,
  'application/x-ndjson': bytes,
  'text/csv': bytes,
  'application/vnd.apache.parquet': bytes,
  'application/avro': bytes,
  'application/json': manifest,
};

const fileHeaders = ['ETag', 'Accept-Ranges', 'Content-Disposition', 'Cache-Control'] as const;

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const keyForm = /^\w{1,64}$/;

const expiry = /^[1-9]\d{0,11}$/;

/** Whatever is wrong with a link, the answer is the same. One that is not written as we write them is not ours. */
const noSuchFile = { says: noSuchLink, whole: true } as const;

const of = (form: RegExp, schema: TString) =>
  ruled(schema, (text) => (form.test(text) ? null : noSuchLink.message));

const fromLink = () => Type.String({ description: 'From the link.' });

const params = worded(
  Type.Object({
    job_id: of(uuid, Type.String(jobIdOptions)),
    // Postgres would refuse to look for U+0000.
    filename: of(
      /^[^\0]*$/,
      Type.String({ description: 'Name of the file.', examples: ['users.ndjson.gz'] }),
    ),
  }),
  noSuchFile,
);

const query = worded(
  Type.Object({
    expires: of(expiry, fromLink()),
    key: Type.Optional(of(keyForm, fromLink())),
    signature: fromLink(),
  }),
  noSuchFile,
);

const downloadFileSchema = {
  operationId: 'downloadExportFile',
  summary: 'Download a file of an export',
  description:
    'What the links of an export lead to. No key is needed: it is the link that authorises, until it expires or the key that asked for it is revoked or expires. `Range` (one range), `If-Range` and `If-None-Match` are understood; the ETag is the SHA-256 of the file.',
  tags: ['exports'],
  security: [],
  params,
  querystring: query,
  headers: Type.Object({
    Range: Type.Optional(
      Type.String({
        description: 'The part that is wanted: one range of bytes.',
        examples: ['bytes=1048576-'],
      }),
    ),
    'If-Range': Type.Optional(
      Type.String({
        description: 'The ETag of the file that the part belongs to; of another file all is sent.',
      }),
    ),
    ...conditionHeaders,
  }),
  response: {
    200: { description: 'The file.', headers: named(...fileHeaders), content },
    206: { description: 'A part of it.', headers: named(...fileHeaders, 'Content-Range'), content },
    304: { type: 'null', description: 'The caller has it already.', headers: named('ETag') },
    ...errorAnswers(
      'invalid_field',
      'not_found',
      'route_not_found',
      'link_expired',
      'job_expired',
      'range_not_satisfiable',
      'rate_limited',
      'internal_error',
      'unavailable',
    ),
  },
} satisfies FastifySchema;

interface Link {
  Params: Static<typeof params>;
  Querystring: Static<typeof query>;
}

/** Names no scope: it is the link that authorises, as long as the key is valid that it was given to. */
export function downloadExportFile(app: FastifyInstance, system: System): void {
  const path = '/api/v1/analytics/exports/files/:job_id/:filename';
  app.get<Link>(path, { schema: downloadFileSchema }, async (request, reply) => {
    const { job_id: jobId, filename } = request.params;
    const { expires, key: keyId = null, signature } = request.query;
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
    .send(body);
}

/*
 * By hand and not by range-parser, which refuses what RFC 9110 wants answered: a suffix longer than the file, which is the whole
 * file, and a range that ends before it begins, which is none.
 */

/** The bytes [start, end). */
interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * What a `Range` header asks for of `bytes` bytes: one part; null: the whole, also where it asks for several parts or cannot be
 * read, which a server may ignore; `unsatisfiable`: nothing that is there.
 */
function readByteRange(header: string | undefined, bytes: number): ByteRange | null | 'unsatisfiable' {
  const match = /^bytes=\s*(\d*)-(\d*)\s*$/i.exec(header ?? '');
  const [, first = '', last = ''] = match ?? [];
  if (first === '' && last === '') return null;
  if (first === '') return lastBytes(Number(last), bytes);
  const [start, end] = [Number(first), last === '' ? bytes : Math.min(Number(last) + 1, bytes)];
  if (last !== '' && Number(last) < start) return null;
  return start < bytes ? { start, end } : 'unsatisfiable';
}

function lastBytes(count: number, bytes: number): ByteRange | 'unsatisfiable' {
  if (count === 0 || bytes === 0) return 'unsatisfiable';
  return { start: Math.max(0, bytes - count), end: bytes };
}
