import type { FastifyInstance } from 'fastify';
import type { System } from '../../context.ts';
import { baseUrl } from '../base-url.ts';
import type { DocumentText } from '../document-text.ts';
import { showDocumentSchema } from '../schemas/show-document-schema.ts';

/** The description of this interface, with the address at which it was asked for. */
export function showDocument(app: FastifyInstance, { config }: System, document: DocumentText): void {
  app.get('/openapi.json', { schema: showDocumentSchema }, (request, reply) => {
    document.send(request, reply, 'json', baseUrl(request, config.publicUrl));
  });
}
