import type { FastifySchema } from 'fastify';
import { Type } from 'typebox';

export const showLivenessSchema = {
  operationId: 'showLiveness',
  summary: 'Is the process alive?',
  description: 'Answers as long as the process does, whatever else is away. Wants no key.',
  tags: ['operations'],
  response: {
    200: {
      description: 'It is.',
      content: {
        'application/json': {
          schema: Type.Object({ status: Type.Literal('live') }, { additionalProperties: false }),
        },
      },
    },
  },
} satisfies FastifySchema;
