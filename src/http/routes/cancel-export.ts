import type { FastifyInstance, FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { exportItem } from '../../api/export.ts';
import type { System } from '../../context.ts';
import { cancelExport } from '../../export/end-export.ts';
import { renderExportItem, requireExport } from '../../export/inspect-exports.ts';
import { baseUrl } from '../page.ts';
import { callerEnvironment } from '../plugins/auth.ts';
import { actionHeaders, idempotencyKeyOf } from '../request-headers.ts';
import { jobRefusals } from '../schemas/answers.ts';
import { type ExportItem, jobIdOf, jobParameters } from '../schemas/job-record.ts';

const cancelExportSchema = {
  operationId: 'cancelExport',
  summary: 'Cancel an export',
  description: 'Stops an export that has not ended. What it has written is removed.',
  tags: ['exports'],
  params: jobParameters,
  headers: Type.Object(actionHeaders),
  response: {
    202: { description: 'It is cancelled.', content: { 'application/json': { schema: exportItem.ref } } },
    ...jobRefusals('job_not_cancellable', 'idempotency_conflict'),
  },
} satisfies FastifySchema;

export function cancelExportRoute(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'export' }, schema: cancelExportSchema } as const;
  app.post('/api/v1/analytics/exports/jobs/:job_id/cancel', options, async (request, reply) => {
    const jobId = jobIdOf(request);
    const environment = callerEnvironment(request);
    const idempotencyKey = idempotencyKeyOf(request);
    await cancelExport(system, environment.environmentId, jobId, idempotencyKey);
    const found = await requireExport(system, environment.environmentId, jobId);
    return reply
      .code(202)
      .send(
        renderExportItem(found, environment, baseUrl(request, system.config.publicUrl)) satisfies ExportItem,
      );
  });
}
