import type { FastifyInstance } from 'fastify';
import { cancelFoundJob } from '../../background-jobs/cancel-job.ts';
import { requireJob } from '../../background-jobs/find-jobs.ts';
import { renderJob } from '../../background-jobs/render-job.ts';
import type { System } from '../../context.ts';
import { baseUrl } from '../base-url.ts';
import { environmentId, requireScope } from '../plugins/auth.ts';
import { cancelJobSchema } from '../schemas/cancel-job-schema.ts';
import { readJobId } from '../schemas/job-id.ts';
import { readIdempotencyKey } from '../schemas/upload-headers.ts';

export function cancelJob(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'import' }, schema: cancelJobSchema } as const;
  app.post('/v1/background_jobs/:job_id/cancel', options, async (request, reply) => {
    const jobId = readJobId(request);
    const environment = environmentId(request);
    const idempotencyKey = readIdempotencyKey(request.headers['idempotency-key']);
    const job = await requireJob(system, environment, jobId);
    if (job.kind === 'export') requireScope(request, 'export');
    const cancelled = await cancelFoundJob(system, environment, job, idempotencyKey);
    return reply.code(202).send(renderJob(cancelled, baseUrl(request, system.config.publicUrl)));
  });
}
