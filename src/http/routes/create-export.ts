import type { FastifyInstance } from 'fastify';
import { requireQueueRoom } from '../../background-jobs/queue-room.ts';
import type { System } from '../../context.ts';
import { requireExport } from '../../export/inspect-exports.ts';
import { renderCreated } from '../../export/render-export.ts';
import { requestExport } from '../../export/request-export.ts';
import { baseUrl } from '../base-url.ts';
import { readIdempotency } from '../idempotency.ts';
import { readJsonObject } from '../json-object.ts';
import { callerEnvironment } from '../plugins/auth.ts';
import { recordBody } from '../record-body.ts';
import { createExportSchema } from '../schemas/create-export-schema.ts';

export function createExport(scope: FastifyInstance, system: System): void {
  const options = { config: { scope: 'export' }, schema: createExportSchema } as const;
  scope.post('/api/v1/analytics/exports', options, async (request, reply) => {
    const environment = callerEnvironment(request);
    const { environmentId } = environment;
    const body = recordBody(request);
    const idempotency = readIdempotency(request, body);
    await requireQueueRoom(system.db, environmentId, idempotency?.key ?? null, system.config.maxQueuedJobs);
    const jobId = await requestExport(system, environmentId, readJsonObject(body), idempotency, {
      requestId: request.id,
    });
    const found = await requireExport(system, environmentId, jobId);
    return reply.code(201).send(renderCreated(found, environment, baseUrl(request, system.config.publicUrl)));
  });
}
