import type { FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { errorAnswers } from './error-answers.ts';

export const showDocumentSchema = {
  operationId: 'showDocument',
  summary: 'Show this document',
  description: 'The description of this interface in OpenAPI 3.1. For people: `/docs`.',
  tags: ['documentation'],
  response: {
    200: {
      description: 'The document.',
      content: {
        'application/json': {
          schema: Type.Object(
            { openapi: Type.String({ pattern: '^3\\.1\\.' }) },
            { additionalProperties: true },
          ),
        },
      },
    },
    ...errorAnswers('internal_error', 'unavailable'),
  },
} satisfies FastifySchema;
