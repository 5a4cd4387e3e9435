import type { FastifyInstance } from 'fastify';
import { requireJob } from '../../background-jobs/find-jobs.ts';
import { renderJobDetail } from '../../background-jobs/render-job.ts';
import type { System } from '../../context.ts';
import { baseUrl } from '../base-url.ts';
import { environmentId } from '../plugins/auth.ts';
import { readJobId } from '../schemas/job-id.ts';
import { showJobSchema } from '../schemas/show-job-schema.ts';

export function showJob(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'read' }, schema: showJobSchema } as const;
  app.get('/v1/background_jobs/:job_id', options, async (request, reply) => {
    const jobId = readJobId(request);
    const environment = environmentId(request);
    const job = await requireJob(system.reader, environment, jobId);
    const base = baseUrl(request, system.config.publicUrl);
    return reply.send(await renderJobDetail(system.reader, environment, job, base));
  });
}
