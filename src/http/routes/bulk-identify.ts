import type { FastifyInstance } from 'fastify';
import type { System } from '../../context.ts';
import type { Entity } from '../../domain/entity.ts';
import { renderLoad } from '../../load/render-load.ts';
import { baseUrl } from '../base-url.ts';
import { bulkIdentifySchema } from '../schemas/bulk-identify-schema.ts';
import { receiveUpload } from '../upload/receive-upload.ts';
import type { UploadKind } from '../upload/upload.ts';

/** `{"users":[…]}` or `{"companies":[…]}` of any length, or a file of one of them in a form. */
export function bulkIdentify(app: FastifyInstance, system: System, entity: Entity): void {
  const type = `bulk_identify_${entity}` as const;
  const kind: UploadKind = { entity, mediaTypes: ['application/json'], defaultFilename: `${type}.json` };
  const options = { config: { scope: 'import' }, schema: bulkIdentifySchema[entity] } as const;
  app.post(`/v1/${entity}/bulk_identify`, options, async (request, reply) => {
    const load = await receiveUpload(system, request, type, kind);
    return reply.code(202).send(renderLoad(load, baseUrl(request, system.config.publicUrl)));
  });
}
