import type { FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { jobParameters } from './job-parameters.ts';
import { jobRecord } from './job-record.ts';
import { jobRefusals } from './job-refusals.ts';
import { actionHeaders } from './request-headers.ts';

export const cancelJobSchema = {
  operationId: 'cancelJob',
  summary: 'Cancel a background job',
  description: 'Stops a job that has not ended. What it has applied stays. A deletion cannot be cancelled.',
  tags: ['jobs'],
  params: jobParameters,
  headers: Type.Object(actionHeaders),
  response: {
    202: { description: 'It is cancelled.', content: { 'application/json': { schema: jobRecord.ref } } },
    ...jobRefusals('job_not_cancellable', 'idempotency_conflict'),
  },
} satisfies FastifySchema;
