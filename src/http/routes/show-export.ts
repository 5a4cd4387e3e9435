import type { FastifyInstance, FastifySchema } from 'fastify';
import type { Static } from 'typebox';
import { exportJob } from '../../api/export.ts';
import type { System } from '../../context.ts';
import { fileLinks, linksExpireAt } from '../../export/file-links.ts';
import { renderExport, requireExport } from '../../export/inspect-exports.ts';
import { baseUrl } from '../page.ts';
import { callerEnvironment, callerKeyId } from '../plugins/auth.ts';
import { jobRefusals } from '../schemas/answers.ts';
import { jobIdOf, jobParameters } from '../schemas/job-record.ts';

type ExportJob = Static<typeof exportJob.schema>;

const showExportSchema = {
  operationId: 'showExport',
  summary: 'Show an export',
  description: 'How far it is and, once it is completed, links to its files: new ones at every request.',
  tags: ['exports'],
  params: jobParameters,
  response: {
    200: { description: 'The export.', content: { 'application/json': { schema: exportJob.ref } } },
    ...jobRefusals(),
  },
} satisfies FastifySchema;

/** Its answer opens the data, so it wants the scope that exports want. */
export function showExport(app: FastifyInstance, system: System): void {
  const { config } = system;
  const options = { config: { scope: 'export' }, schema: showExportSchema } as const;
  app.get('/api/v1/analytics/exports/jobs/:job_id', options, async (request, reply) => {
    const jobId = jobIdOf(request);
    const environment = callerEnvironment(request);
    const found = await requireExport(system.reader, environment.environmentId, jobId);
    const base = baseUrl(request, config.publicUrl);
    const expireAt = linksExpireAt(system.files, config.linkTtlHours);
    const { apiKey } = config;
    const links = await fileLinks({ ...system, apiKey }, found, base, expireAt, callerKeyId(request));
    return reply.send(renderExport(found, environment, links, base) satisfies ExportJob);
  });
}
