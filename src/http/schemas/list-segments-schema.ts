import type { FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { DEFAULT_PAGE_SIZE, MAX_LOOKUP_PAGE_SIZE } from '../../domain/limits.ts';
import { refusals } from './error-answers.ts';
import { segmentPage } from './segment-page.ts';

export const listSegmentsSchema = {
  operationId: 'listSegments',
  summary: 'List segments',
  description:
    'The segments that the operator defined, by id, page by page. A cursor stays good when segments are added or removed. A body of the request is ignored; other parameters are refused.',
  tags: ['lookups'],
  querystring: Type.Object({
    after_cursor: Type.Optional(
      Type.String({
        description: 'The page after it: `metadata.cursor.after` of the page before, unchanged.',
      }),
    ),
    before_cursor: Type.Optional(
      Type.String({ description: 'The page before it: `metadata.cursor.before`, unchanged. Not both.' }),
    ),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_LOOKUP_PAGE_SIZE,
        default: DEFAULT_PAGE_SIZE,
        description: 'Segments on a page.',
      }),
    ),
  }),
  response: {
    200: { description: 'A page of segments.', content: { 'application/json': { schema: segmentPage.ref } } },
    ...refusals('invalid_field', 'invalid_cursor'),
  },
} satisfies FastifySchema;
