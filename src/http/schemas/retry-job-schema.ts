import type { FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { jobParameters } from './job-parameters.ts';
import { jobRecord } from './job-record.ts';
import { jobRefusals } from './job-refusals.ts';
import { actionHeaders } from './request-headers.ts';

export const retryJobSchema = {
  operationId: 'retryJob',
  summary: 'Retry a background job',
  description: 'Queues a job that failed or was cancelled again; it goes on with what is left.',
  tags: ['jobs'],
  params: jobParameters,
  headers: Type.Object(actionHeaders),
  response: {
    202: { description: 'It is queued again.', content: { 'application/json': { schema: jobRecord.ref } } },
    ...jobRefusals('job_not_retryable', 'job_expired', 'idempotency_conflict'),
  },
} satisfies FastifySchema;
