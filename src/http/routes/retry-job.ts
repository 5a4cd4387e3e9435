import type { FastifyInstance } from 'fastify';
import { requireRetryable } from '../../background-jobs/require-retryable.ts';
import type { System } from '../../context.ts';
import { requireLoad } from '../../load/inspect-load.ts';
import { renderLoad } from '../../load/render-load.ts';
import { retryLoad } from '../../load/retry-load.ts';
import { baseUrl } from '../base-url.ts';
import { environmentId } from '../plugins/auth.ts';
import { readJobId } from '../schemas/job-id.ts';
import { retryJobSchema } from '../schemas/retry-job-schema.ts';
import { readIdempotencyKey } from '../schemas/upload-headers.ts';

export function retryJob(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'import' }, schema: retryJobSchema } as const;
  app.post('/v1/background_jobs/:job_id/retry', options, async (request, reply) => {
    const jobId = readJobId(request);
    const environment = environmentId(request);
    await requireRetryable(system, environment, jobId);
    await retryLoad(system, environment, jobId, readIdempotencyKey(request.headers['idempotency-key']));
    const load = await requireLoad(system, environment, jobId);
    // What it was made by this request; a worker may have begun, and even ended.
    const queued = { ...load, status: 'queued', endedAt: null } as const;
    return reply.code(202).send(renderLoad(queued, baseUrl(request, system.config.publicUrl)));
  });
}
