import type { FastifyInstance } from 'fastify';
import { requireJob } from '../../background-jobs/find-jobs.ts';
import type { System } from '../../context.ts';
import { countRejects } from '../../load/inspect-load.ts';
import { baseUrl } from '../base-url.ts';
import { environmentId } from '../plugins/auth.ts';
import { renderDeletionDetail } from '../render-deletion.ts';
import { renderExportDetail } from '../render-export.ts';
import { renderJobDetail } from '../render-job.ts';
import { readJobId } from '../schemas/job-id.ts';
import { showJobSchema } from '../schemas/show-job-schema.ts';

export function showJob(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'read' }, schema: showJobSchema } as const;
  app.get('/v1/background_jobs/:job_id', options, async (request, reply) => {
    const jobId = readJobId(request);
    const environment = environmentId(request);
    const base = baseUrl(request, system.config.publicUrl);
    const job = await requireJob(system, environment, jobId);
    if (job.kind === 'export') return reply.send(renderExportDetail(job.export, base));
    if (job.kind === 'deletion') return reply.send(renderDeletionDetail(job.deletion, base));
    const byCode = job.load.tally.rejected === 0 ? {} : await countRejects(system, environment, jobId);
    return reply.send(renderJobDetail(job.load, byCode, base));
  });
}
