import type { FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { exportItem } from './export-job.ts';
import { jobParameters } from './job-parameters.ts';
import { jobRefusals } from './job-refusals.ts';
import { actionHeaders } from './request-headers.ts';

export const cancelExportSchema = {
  operationId: 'cancelExport',
  summary: 'Cancel an export',
  description: 'Stops an export that has not ended. What it has written is removed.',
  tags: ['exports'],
  params: jobParameters,
  headers: Type.Object(actionHeaders),
  response: {
    202: { description: 'It is cancelled.', content: { 'application/json': { schema: exportItem.ref } } },
    ...jobRefusals('job_not_cancellable', 'idempotency_conflict'),
  },
} satisfies FastifySchema;
