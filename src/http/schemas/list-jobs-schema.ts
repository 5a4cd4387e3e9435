import type { FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { jobTypes } from '../../background-jobs/find-jobs.ts';
import { loadStatuses } from '../../domain/load.ts';
import { named } from './answer-headers.ts';
import { refusals } from './error-answers.ts';
import { jobListItem } from './job-record.ts';
import { pageParameters } from './page-parameters.ts';

export const listJobsSchema = {
  operationId: 'listJobs',
  summary: 'List background jobs',
  description:
    'The jobs of the environment, newest first. The body is a bare array: the next page is in `Link`. A body of the request is ignored; other parameters are refused.',
  tags: ['jobs'],
  querystring: Type.Object({
    ...pageParameters,
    type: Type.Optional(Type.Enum([...jobTypes], { type: 'string', description: 'Only jobs of this type.' })),
    status: Type.Optional(
      Type.Enum([...loadStatuses], { type: 'string', description: 'Only jobs in this state.' }),
    ),
    since: Type.Optional(
      Type.String({
        description:
          'Only jobs accepted at or after this: `YYYY-MM-DD`, or an ISO 8601 instant, UTC unless it says otherwise.',
        examples: ['2026-11-20T12:00:00Z'],
      }),
    ),
  }),
  response: {
    200: {
      description: 'A page of jobs.',
      headers: named('X-Total-Count', 'Link'),
      content: { 'application/json': { schema: Type.Array(jobListItem.ref) } },
    },
    ...refusals('invalid_field', 'invalid_cursor', 'invalid_date'),
  },
} satisfies FastifySchema;
