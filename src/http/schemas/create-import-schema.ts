import type { FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { importMediaTypes } from './import-media-types.ts';
import { importRecord } from './job-record.ts';
import { bodyHeaders } from './request-headers.ts';
import { uploadAnswers } from './upload-answers.ts';
import { anyBody, csvBody, formBody, ndjsonBody, packedBody, profilesBody, tsvBody } from './upload-body.ts';
import { uploadOptions } from './upload-options.ts';

const entities = ['users', 'companies', 'auto'];

const bodies = { csv: csvBody, ndjson: ndjsonBody, json: profilesBody, packed: packedBody, any: anyBody };

const rawBodies = Object.entries(importMediaTypes).flatMap(([kind, mediaTypes]) =>
  mediaTypes.map((mediaType) => [mediaType, bodies[kind as keyof typeof bodies]] as const),
);

export const createImportSchema = {
  operationId: 'createImport',
  summary: 'Import a file',
  description:
    'Starts a job that loads a file of users or companies, of any size: in a form, or as the body itself. A body without a `Content-Type` is taken too. Records that are refused do not fail the job; it reports them.',
  tags: ['loads'],
  headers: Type.Object({
    ...bodyHeaders,
    'Content-Disposition': Type.Optional(
      Type.String({
        description: 'Names a file that is the body itself.',
        examples: ['attachment; filename="users.csv"'],
      }),
    ),
  }),
  querystring: Type.Object(uploadOptions(entities)),
  body: {
    content: {
      'multipart/form-data': formBody(entities),
      ...Object.fromEntries(rawBodies),
      'text/tab-separated-values': tsvBody,
    },
  },
  response: uploadAnswers(200, importRecord.ref),
} satisfies FastifySchema;
