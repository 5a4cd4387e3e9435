import type { FastifyInstance, FastifySchema } from 'fastify';
import { Type } from 'typebox';

const showLivenessSchema = {
  operationId: 'showLiveness',
  summary: 'Is the process alive?',
  description: 'Answers as long as the process does, whatever else is away. Wants no key.',
  tags: ['operations'],
  response: {
    200: {
      description: 'It is.',
      content: {
        'application/json': {
          schema: Type.Object(
            { status: Type.Literal('live', { description: 'Always `live`.' }) },
            { additionalProperties: false },
          ),
        },
      },
    },
  },
} satisfies FastifySchema;

/** Answers as long as the event loop does. Asks nobody: a database that is away is no reason to restart this process. */
export function showLiveness(app: FastifyInstance): void {
  const options = { config: { alwaysServed: true }, schema: showLivenessSchema } as const;
  app.get('/health/live', options, (_request, reply) => {
    reply.header('cache-control', 'no-store').send({ status: 'live' });
  });
}
