import type { FastifyInstance } from 'fastify';
import type { System } from '../../context.ts';
import type { Doors } from '../app.ts';
import { showReadinessSchema } from '../schemas/show-readiness-schema.ts';

const retryAfterSeconds = '5';

/** Whether to send requests here. Says what is away and not why: that is in the log. */
export function showReadiness(app: FastifyInstance, { health }: System, doors: Doors): void {
  app.addHook('preClose', async () => {
    doors.closing = true;
  });
  const options = { config: { alwaysServed: true }, schema: showReadinessSchema } as const;
  app.get('/health/ready', options, async (_request, reply) => {
    const { status: found, parts } = await health.check();
    const status = doors.closing ? 'not_ready' : found;
    reply.header('cache-control', 'no-store');
    if (status === 'not_ready') reply.code(503).header('retry-after', retryAfterSeconds);
    return reply.send({ status, parts });
  });
}
