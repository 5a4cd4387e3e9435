import type { FastifyInstance } from 'fastify';
import type { System } from '../../context.ts';
import { fileLinks, linksExpireAt } from '../../export/file-links.ts';
import { requireExport } from '../../export/inspect-exports.ts';
import { renderExport } from '../../export/render-export.ts';
import { baseUrl } from '../base-url.ts';
import { callerEnvironment, callerKeyId } from '../plugins/auth.ts';
import { readJobId } from '../schemas/job-id.ts';
import { showExportSchema } from '../schemas/show-export-schema.ts';

/** Its answer opens the data, so it wants the scope that exports want. */
export function showExport(app: FastifyInstance, system: System): void {
  const { config } = system;
  const options = { config: { scope: 'export' }, schema: showExportSchema } as const;
  app.get('/api/v1/analytics/exports/jobs/:job_id', options, async (request, reply) => {
    const jobId = readJobId(request);
    const environment = callerEnvironment(request);
    const found = await requireExport(system.reader, environment.environmentId, jobId);
    const base = baseUrl(request, config.publicUrl);
    const expireAt = linksExpireAt(system.files, config.linkTtlHours);
    const { apiKey } = config;
    const links = await fileLinks({ ...system, apiKey }, found, base, expireAt, callerKeyId(request));
    return reply.header('cache-control', 'no-store').send(renderExport(found, environment, links, base));
  });
}
