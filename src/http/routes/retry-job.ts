import type { FastifyInstance, FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { jobRecord } from '../../api/job.ts';
import { requireRetryable } from '../../background-jobs/jobs.ts';
import type { System } from '../../context.ts';
import { renderLoad } from '../../load/render-load.ts';
import { retryLoad } from '../../load/retry-load.ts';
import { requireLoad } from '../../postgres/stores/read-loads.ts';
import { baseUrl } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { actionHeaders, idempotencyKeyOf } from '../request-headers.ts';
import { jobRefusals } from '../schemas/answers.ts';
import { type JobRecord, jobIdOf, jobParameters } from '../schemas/job-record.ts';

const retryJobSchema = {
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

export function retryJob(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'import' }, schema: retryJobSchema } as const;
  app.post('/v1/background_jobs/:job_id/retry', options, async (request, reply) => {
    const jobId = jobIdOf(request);
    const environment = environmentId(request);
    await requireRetryable(system, environment, jobId);
    await retryLoad(system, environment, jobId, idempotencyKeyOf(request));
    const load = await requireLoad(system, environment, jobId);
    // What it was made by this request; a worker may have begun, and even ended.
    const queued = { ...load, status: 'queued', endedAt: null } as const;
    return reply
      .code(202)
      .send(renderLoad(queued, baseUrl(request, system.config.publicUrl)) satisfies JobRecord);
  });
}
