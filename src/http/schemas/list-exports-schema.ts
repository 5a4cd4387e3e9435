import type { FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { loadStatuses } from '../../domain/load.ts';
import { named } from './answer-headers.ts';
import { refusals } from './error-answers.ts';
import { exportItem } from './export-job.ts';
import { pageParameters } from './page-parameters.ts';

export const listExportsSchema = {
  operationId: 'listExports',
  summary: 'List exports',
  description:
    'The exports of the environment, newest first. The body is a bare array: the next page is in `Link`. Other parameters are refused.',
  tags: ['exports'],
  querystring: Type.Object({
    ...pageParameters,
    status: Type.Optional(
      Type.Enum([...loadStatuses], { type: 'string', description: 'Only exports in this state.' }),
    ),
  }),
  response: {
    200: {
      description: 'A page of exports.',
      headers: named('X-Total-Count', 'Link'),
      content: { 'application/json': { schema: Type.Array(exportItem.ref) } },
    },
    ...refusals('invalid_field', 'invalid_cursor'),
  },
} satisfies FastifySchema;
