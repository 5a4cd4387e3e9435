import type { FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { deletionJobDetail } from './deletion-job-detail.ts';
import { exportJobDetail } from './export-job-detail.ts';
import { jobDetail } from './job-detail.ts';
import { jobParameters } from './job-parameters.ts';
import { jobRefusals } from './job-refusals.ts';

export const showJobSchema = {
  operationId: 'showJob',
  summary: 'Show a background job',
  description: 'The job with its progress, its counts and, if it failed, why.',
  tags: ['jobs'],
  params: jobParameters,
  response: {
    200: {
      description: 'The job.',
      content: {
        'application/json': {
          schema: Type.Union([jobDetail.ref, exportJobDetail.ref, deletionJobDetail.ref]),
        },
      },
    },
    ...jobRefusals(),
  },
} satisfies FastifySchema;
