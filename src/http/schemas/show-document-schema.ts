import type { FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { named } from './answer-headers.ts';
import { errorAnswers } from './error-answers.ts';

export const showDocumentSchema = {
  operationId: 'showDocument',
  summary: 'Show this document',
  description: 'The description of this interface in OpenAPI 3.1. For people: `/docs`.',
  tags: ['documentation'],
  headers: Type.Object({ 'If-None-Match': Type.Optional(Type.String()) }),
  response: {
    200: {
      description: 'The document.',
      headers: named('ETag', 'Cache-Control'),
      content: {
        'application/json': {
          schema: Type.Object(
            { openapi: Type.String({ pattern: '^3\\.1\\.' }) },
            { additionalProperties: true },
          ),
        },
      },
    },
    304: { type: 'null', description: 'The caller has it already.', headers: named('ETag') },
    ...errorAnswers('rate_limited', 'internal_error', 'unavailable'),
  },
} satisfies FastifySchema;
