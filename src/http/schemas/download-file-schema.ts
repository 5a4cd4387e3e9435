import type { FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { named } from './answer-headers.ts';
import { errorAnswers } from './error-answers.ts';
import { jobParameters } from './job-parameters.ts';

const bytes = { schema: Type.Any({ description: 'The file, or the part of it that was asked for.' }) };

/** By the ends of the names that exports give their files. */
const content = {
  'application/gzip': bytes,
  'application/x-ndjson': bytes,
  'text/csv': bytes,
  'application/vnd.apache.parquet': bytes,
  'application/json': bytes,
};

const fileHeaders = ['ETag', 'Accept-Ranges', 'Content-Disposition', 'Cache-Control'] as const;

export const downloadFileSchema = {
  operationId: 'downloadExportFile',
  summary: 'Download a file of an export',
  description:
    'What the links of an export lead to. No key is needed: it is the link that authorises, until it expires or the key that asked for it is revoked or expires. `Range` (one range), `If-Range` and `If-None-Match` are understood; the ETag is the SHA-256 of the file.',
  tags: ['exports'],
  security: [],
  params: Type.Object({
    ...jobParameters.properties,
    filename: Type.String({ examples: ['users.ndjson.gz'] }),
  }),
  querystring: Type.Object({
    expires: Type.String({ description: 'From the link.' }),
    key: Type.Optional(Type.String({ description: 'From the link.' })),
    signature: Type.String({ description: 'From the link.' }),
  }),
  headers: Type.Object({
    Range: Type.Optional(Type.String({ examples: ['bytes=1048576-'] })),
    'If-Range': Type.Optional(Type.String()),
    'If-None-Match': Type.Optional(Type.String()),
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
