import type { FastifyInstance, FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { refusals } from '../schemas/answers.ts';

const validateKeySchema = {
  operationId: 'validateKey',
  summary: 'Is the key valid?',
  description: 'Clients call it to test a connection. The key may have any scope.',
  tags: ['keys'],
  response: {
    200: {
      description: 'It is. The object is empty.',
      content: {
        'application/json': { schema: Type.Object({}, { additionalProperties: false, examples: [{}] }) },
      },
    },
    ...refusals(),
  },
} satisfies FastifySchema;

/** 200 for a good key; what is wrong with another says the hook that looks at keys. */
export function validateKey(app: FastifyInstance): void {
  app.get('/v1/validate', { config: { scope: 'any' }, schema: validateKeySchema }, (_request, reply) => {
    reply.send({});
  });
}
