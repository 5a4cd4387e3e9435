import type { FastifyInstance } from 'fastify';
import type { System } from '../../context.ts';
import { cancelExport } from '../../export/cancel-export.ts';
import { requireExport } from '../../export/inspect-exports.ts';
import { renderExportItem } from '../../export/render-export.ts';
import { baseUrl } from '../base-url.ts';
import { callerEnvironment } from '../plugins/auth.ts';
import { cancelExportSchema } from '../schemas/cancel-export-schema.ts';
import { readJobId } from '../schemas/job-id.ts';
import { readIdempotencyKey } from '../schemas/upload-headers.ts';

export function cancelExportRoute(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'export' }, schema: cancelExportSchema } as const;
  app.post('/api/v1/analytics/exports/jobs/:job_id/cancel', options, async (request, reply) => {
    const jobId = readJobId(request);
    const environment = callerEnvironment(request);
    const idempotencyKey = readIdempotencyKey(request.headers['idempotency-key']);
    await cancelExport(system, environment.environmentId, jobId, idempotencyKey);
    const found = await requireExport(system, environment.environmentId, jobId);
    return reply
      .code(202)
      .send(renderExportItem(found, environment, baseUrl(request, system.config.publicUrl)));
  });
}
