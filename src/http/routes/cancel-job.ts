import type { FastifyInstance } from 'fastify';
import type { System } from '../../context.ts';
import { cancelLoad } from '../../load/cancel-load.ts';
import { requireLoad } from '../../load/inspect-load.ts';
import { baseUrl } from '../base-url.ts';
import { environmentId } from '../plugins/auth.ts';
import { renderJob } from '../render-job.ts';
import { readJobId } from '../schemas/job-id.ts';

export function cancelJob(app: FastifyInstance, system: System): void {
  app.post('/v1/background_jobs/:job_id/cancel', { config: { scope: 'import' } }, async (request, reply) => {
    const jobId = readJobId(request);
    const environment = environmentId(request);
    await cancelLoad(system, environment, jobId);
    const load = await requireLoad(system, environment, jobId);
    return reply.code(202).send(renderJob(load, baseUrl(request, system.config.publicUrl)));
  });
}
