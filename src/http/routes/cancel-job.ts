import type { FastifyInstance, FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { jobRecord } from '../../api/job.ts';
import { cancelFoundJob, renderJob, requireJob } from '../../background-jobs/jobs.ts';
import type { System } from '../../context.ts';
import { baseUrl } from '../page.ts';
import { environmentId, requireScope } from '../plugins/auth.ts';
import { actionHeaders, idempotencyKeyOf } from '../request-headers.ts';
import { jobRefusals } from '../schemas/answers.ts';
import { type JobRecord, jobIdOf, jobParameters } from '../schemas/job-record.ts';

const cancelJobSchema = {
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

export function cancelJob(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'import' }, schema: cancelJobSchema } as const;
  app.post('/v1/background_jobs/:job_id/cancel', options, async (request, reply) => {
    const jobId = jobIdOf(request);
    const environment = environmentId(request);
    const idempotencyKey = idempotencyKeyOf(request);
    const job = await requireJob(system, environment, jobId);
    if (job.kind === 'export') requireScope(request, 'export');
    const cancelled = await cancelFoundJob(system, environment, job, idempotencyKey);
    return reply
      .code(202)
      .send(renderJob(cancelled, baseUrl(request, system.config.publicUrl)) satisfies JobRecord);
  });
}
