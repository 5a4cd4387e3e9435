import type { FastifyInstance } from 'fastify';
import type { System } from '../../context.ts';
import { type LoadPage, listLoads } from '../../load/inspect-load.ts';
import { baseUrl } from '../base-url.ts';
import { writeJobCursor } from '../cursor.ts';
import { nextLink } from '../next-link.ts';
import { environmentId } from '../plugins/auth.ts';
import { renderListItem } from '../render-job.ts';
import { readListJobsQuery } from '../schemas/list-jobs-query.ts';

const none: LoadPage = { loads: [], total: 0, next: null };

/** Newest first; a bare array, its continuation in the headers. */
export function listJobs(app: FastifyInstance, system: System): void {
  app.get('/v1/background_jobs', { config: { scope: 'read' } }, async (request, reply) => {
    const { limit, after, type, status, since } = readListJobsQuery(request.query);
    const filter = {
      ...(status !== undefined && { status }),
      ...(since !== undefined && { since }),
    };
    const page =
      type === 'export'
        ? none
        : await listLoads(system, environmentId(request), type === undefined ? filter : { ...filter, type }, {
            limit,
            after,
          });
    const base = baseUrl(request, system.config.publicUrl);
    reply.header('x-total-count', String(page.total));
    if (page.next !== null) reply.header('link', nextLink(request, base, writeJobCursor(page.next)));
    const now = new Date();
    return reply.send(page.loads.map((load) => renderListItem(load, base, now)));
  });
}
