import type { FastifyInstance } from 'fastify';
import { listJobs } from '../../background-jobs/find-jobs.ts';
import { renderJobListItem } from '../../background-jobs/render-job.ts';
import type { System } from '../../context.ts';
import { MAX_PAGE_BYTES } from '../../domain/limits.ts';
import { baseUrl } from '../base-url.ts';
import { writeJobCursor } from '../cursor.ts';
import { nextLink } from '../next-link.ts';
import { environmentId } from '../plugins/auth.ts';
import { readListJobsQuery } from '../schemas/list-jobs-query.ts';
import { listJobsSchema } from '../schemas/list-jobs-schema.ts';

/** Newest first; a bare array, its continuation in the headers. */
export function listJobsRoute(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'read', answerBytes: MAX_PAGE_BYTES }, schema: listJobsSchema } as const;
  app.get('/v1/background_jobs', options, async (request, reply) => {
    const query = readListJobsQuery(request.query);
    const page = await listJobs(system.reader, environmentId(request), query, query);
    const base = baseUrl(request, system.config.publicUrl);
    reply.header('x-total-count', String(page.total));
    if (page.next !== null) reply.header('link', nextLink(request, base, writeJobCursor(page.next)));
    const now = new Date();
    return reply.send(page.jobs.map((job) => renderJobListItem(job, base, now)));
  });
}
