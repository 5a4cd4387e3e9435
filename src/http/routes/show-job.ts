import type { FastifyInstance } from 'fastify';
import type { System } from '../../context.ts';
import { countRejects, requireLoad } from '../../load/inspect-load.ts';
import { baseUrl } from '../base-url.ts';
import { environmentId } from '../plugins/auth.ts';
import { renderJobDetail } from '../render-job.ts';
import { readJobId } from '../schemas/job-id.ts';

export function showJob(app: FastifyInstance, system: System): void {
  app.get('/v1/background_jobs/:job_id', { config: { scope: 'read' } }, async (request, reply) => {
    const jobId = readJobId(request);
    const environment = environmentId(request);
    const load = await requireLoad(system, environment, jobId);
    const byCode = load.tally.rejected === 0 ? {} : await countRejects(system, environment, jobId);
    return reply.send(renderJobDetail(load, byCode, baseUrl(request, system.config.publicUrl)));
  });
}
