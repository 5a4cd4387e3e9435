import type { FastifyInstance } from 'fastify';
import { showLivenessSchema } from '../schemas/show-liveness-schema.ts';

/** Answers as long as the event loop does. Asks nobody: a database that is away is no reason to restart this process. */
export function showLiveness(app: FastifyInstance): void {
  const options = { config: { alwaysServed: true }, schema: showLivenessSchema } as const;
  app.get('/health/live', options, (_request, reply) => {
    reply.header('cache-control', 'no-store').send({ status: 'live' });
  });
}
