import type { FastifyInstance, FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { cancelFoundJob } from '../../background-jobs/cancel-job.ts';
import { requireJob } from '../../background-jobs/find-jobs.ts';
import { renderJob } from '../../background-jobs/render-job.ts';
import type { System } from '../../context.ts';
import { baseUrl } from '../links.ts';
import { environmentId, requireScope } from '../plugins/auth.ts';
import { actionHeaders, readIdempotencyKey } from '../request-headers.ts';
import { jobRefusals } from '../schemas/answers.ts';
import { type JobRecord, jobParameters, jobRecord, readJobId } from '../schemas/job-record.ts';

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
    const jobId = readJobId(request);
    const environment = environmentId(request);
    const idempotencyKey = readIdempotencyKey(request.headers['idempotency-key']);
    const job = await requireJob(system, environment, jobId);
    if (job.kind === 'export') requireScope(request, 'export');
    const cancelled = await cancelFoundJob(system, environment, job, idempotencyKey);
    return reply
      .code(202)
      .send(renderJob(cancelled, baseUrl(request, system.config.publicUrl)) satisfies JobRecord);
  });
}
