import type { FastifyInstance, FastifySchema } from 'fastify';
import { Type } from 'typebox';
import type { System } from '../../context.ts';
import { baseUrl } from '../page.ts';
import type { DocumentText } from '../plugins/api-document.ts';
import { conditionHeaders } from '../request-headers.ts';
import { errorAnswers, named } from '../schemas/answers.ts';

const showDocumentSchema = {
  operationId: 'showDocument',
  summary: 'Show this document',
  description: 'The description of this interface in OpenAPI 3.1. For people: `/docs`.',
  tags: ['documentation'],
  headers: Type.Object(conditionHeaders),
  response: {
    200: {
      description: 'The document.',
      headers: named('ETag', 'Cache-Control'),
      content: {
        'application/json': {
          schema: Type.Object(
            {
              openapi: Type.String({
                pattern: '^3\\.1\\.',
                description: 'The version of OpenAPI.',
                examples: ['3.1.0'],
              }),
            },
            { additionalProperties: true },
          ),
        },
      },
    },
    304: { type: 'null', description: 'The caller has it already.', headers: named('ETag') },
    ...errorAnswers('rate_limited', 'internal_error', 'unavailable'),
  },
} satisfies FastifySchema;

/** The description of this interface, with the address at which it was asked for. */
export function showDocument(app: FastifyInstance, { config }: System, document: DocumentText): void {
  app.get('/openapi.json', { schema: showDocumentSchema }, (request, reply) => {
    document.send(request, reply, 'json', baseUrl(request, config.publicUrl));
  });
}
