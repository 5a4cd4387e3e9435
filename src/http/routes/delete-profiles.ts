import type { FastifyInstance } from 'fastify';
import { requireQueueRoom } from '../../background-jobs/queue-room.ts';
import type { System } from '../../context.ts';
import { requireDeletion } from '../../deletion/inspect-deletions.ts';
import { readDeletionRequest } from '../../deletion/read-request.ts';
import { renderDeletion } from '../../deletion/render-deletion.ts';
import { requestDeletion } from '../../deletion/request-deletion.ts';
import type { Entity } from '../../domain/entity.ts';
import { baseUrl } from '../base-url.ts';
import { readIdempotency } from '../idempotency.ts';
import { environmentId } from '../plugins/auth.ts';
import { recordBody } from '../record-body.ts';
import { deleteProfilesSchema } from '../schemas/delete-profiles-schema.ts';

export function deleteProfilesRoute(scope: FastifyInstance, system: System, entity: Entity): void {
  const options = { config: { scope: 'delete' }, schema: deleteProfilesSchema(entity) } as const;
  scope.delete(`/v1/${entity}`, options, async (request, reply) => {
    const environment = environmentId(request);
    const body = recordBody(request);
    const idempotency = readIdempotency(request, body);
    const asked = readDeletionRequest(entity, body);
    await requireQueueRoom(system.db, environment, idempotency?.key ?? null, system.config.maxQueuedJobs);
    const jobId = await requestDeletion(system, environment, entity, asked, idempotency, request.id);
    const found = await requireDeletion(system, environment, jobId);
    return reply.code(202).send(renderDeletion(found, baseUrl(request, system.config.publicUrl)));
  });
}
