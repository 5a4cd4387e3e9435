import type { FastifySchema } from 'fastify';
import { exportJob } from './export-job.ts';
import { jobParameters } from './job-parameters.ts';
import { jobRefusals } from './job-refusals.ts';

export const showExportSchema = {
  operationId: 'showExport',
  summary: 'Show an export',
  description: 'How far it is and, once it is completed, links to its files: new ones at every request.',
  tags: ['exports'],
  params: jobParameters,
  response: {
    200: { description: 'The export.', content: { 'application/json': { schema: exportJob.ref } } },
    ...jobRefusals(),
  },
} satisfies FastifySchema;
