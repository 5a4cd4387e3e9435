import type { FastifyInstance } from 'fastify';
import type { System } from '../../context.ts';
import { MAX_PAGE_BYTES } from '../../domain/limits.ts';
import { listExports } from '../../export/inspect-exports.ts';
import { renderExportItem } from '../../export/render-export.ts';
import { baseUrl } from '../base-url.ts';
import { writeJobCursor } from '../cursor.ts';
import { nextLink } from '../next-link.ts';
import { callerEnvironment } from '../plugins/auth.ts';
import { listExportsSchema } from '../schemas/list-exports-schema.ts';
import { readListExportsQuery } from '../schemas/list-jobs-query.ts';

/** Newest first; a bare array, its continuation in the headers. */
export function listExportsRoute(app: FastifyInstance, system: System): void {
  const options = {
    config: { scope: 'export', answerBytes: MAX_PAGE_BYTES },
    schema: listExportsSchema,
  } as const;
  app.get('/api/v1/analytics/exports/jobs', options, async (request, reply) => {
    const query = readListExportsQuery(request.query);
    const environment = callerEnvironment(request);
    const filter = query.status === undefined ? {} : { status: query.status };
    const page = await listExports(system.reader, environment.environmentId, filter, query);
    const base = baseUrl(request, system.config.publicUrl);
    reply.header('x-total-count', String(page.total));
    if (page.next !== null) reply.header('link', nextLink(request, base, writeJobCursor(page.next)));
    return reply.send(page.exports.map((each) => renderExportItem(each, environment, base)));
  });
}
