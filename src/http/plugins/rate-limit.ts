import rateLimit from '@fastify/rate-limit';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';

/**
 * Bounds how often a key may be used; after authentication, since it is the key that is counted. Every serving process
 * counts for itself: a count that is shared would cost each request a question to Redis, and fail with it.
 */
export function addRateLimit(app: FastifyInstance, { config }: System): void {
  if (config.rateLimit === 0) return;
  const { rateLimit: perSecond, rateLimitWindowMs: timeWindow } = config;
  app.register(rateLimit, {
    global: false,
    max: Math.floor((perSecond * timeWindow) / 1_000),
    timeWindow,
    keyGenerator: ({ caller }) => caller?.keyId ?? '',
  });
  app.after(() => {
    const count = app.createRateLimit();
    const limit = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
      const found = await count(request);
      if (found.isAllowed) return;
      reply
        .header('ratelimit-limit', String(found.max))
        .header('ratelimit-remaining', String(found.remaining))
        .header('ratelimit-reset', String(found.ttlInSeconds));
      if (!found.isExceeded) return;
      reply.header('retry-after', String(found.ttlInSeconds));
      const details = `${found.max} requests in ${timeWindow} ms`;
      throw inputError('rate_limited', 'This key makes too many requests; try again later', details);
    };
    app.addHook('onRequest', (request, reply, done) => {
      if (request.caller === null) done();
      else limit(request, reply).then(() => done(), done);
    });
  });
}
