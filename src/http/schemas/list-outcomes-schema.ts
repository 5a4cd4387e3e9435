import type { FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { named } from './answer-headers.ts';
import { jobParameters } from './job-parameters.ts';
import { jobRefusals } from './job-refusals.ts';
import { outcomePage } from './outcome-page.ts';
import { pageParameters } from './page-parameters.ts';

export const listOutcomesSchema = {
  operationId: 'listOutcomes',
  summary: 'List what became of the ids of a deletion',
  description:
    'By `Accept`: a page of them as JSON (also where nothing else is wanted), or all of them as CSV or NDJSON.',
  tags: ['deletions'],
  params: jobParameters,
  querystring: Type.Object(pageParameters),
  response: {
    200: {
      description:
        'The outcomes, in the order of the request. `Link` comes with JSON, `Content-Disposition` with files.',
      headers: named('Link', 'Content-Disposition', 'Vary'),
      content: {
        'application/json': { schema: outcomePage.ref },
        'text/csv': {
          schema: Type.String({ description: 'The columns `id`, `outcome`, `events`, `users`.' }),
        },
        'application/x-ndjson': { schema: Type.String({ description: 'The items of the JSON pages.' }) },
      },
    },
    ...jobRefusals('invalid_cursor'),
  },
} satisfies FastifySchema;
