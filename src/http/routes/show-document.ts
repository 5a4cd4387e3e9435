import type { FastifyInstance } from 'fastify';
import type { System } from '../../context.ts';
import { baseUrl } from '../base-url.ts';
import { showDocumentSchema } from '../schemas/show-document-schema.ts';

/** The description of this interface, with the address at which it was asked for. */
export function showDocument(app: FastifyInstance, { config }: System): void {
  app.get('/openapi.json', { schema: showDocumentSchema }, async (request, reply) => {
    const servers = [{ url: baseUrl(request, config.publicUrl) }];
    return reply.send({ ...app.swagger(), servers });
  });
}
