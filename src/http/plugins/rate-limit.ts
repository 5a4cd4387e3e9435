import type { FastifyInstance } from 'fastify';
import { Windows } from '../../access/admin-login.ts';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';

/** The most keys that are counted at a time. Beyond it, the key that began its window first is forgotten. */
const maxKeys = 10_000;

/**
 * Bounds how often a key may be used. It runs after authentication, since keys are counted. Every serving process counts for itself: a
 * shared count would cost each request a question to Redis, and fail with it. No plugin counts, since plugins tell requests that come
 * in the same turn of the event loop, such as a burst of a key that is being looked up, the count of the last of them.
 */
export function addRateLimit(app: FastifyInstance, { config }: System): void {
  if (config.rateLimit === 0) return;
  const { rateLimit: perSecond, rateLimitWindowMs: windowMs } = config;
  const max = Math.floor((perSecond * windowMs) / 1_000);
  const windows = new Windows(windowMs, maxKeys);
  app.addHook('onRequest', ({ caller }, reply, done) => {
    if (caller === null) {
      done();
      return;
    }
    const { count, leftMs } = windows.add(caller.keyId);
    // Rounding first: the rest of a window that has just begun may be a hair more than the whole window.
    const seconds = String(Math.max(1, Math.ceil(Math.round(leftMs) / 1_000)));
    reply
      .header('ratelimit-limit', String(max))
      .header('ratelimit-remaining', String(Math.max(0, max - count)))
      .header('ratelimit-reset', seconds);
    if (count <= max) {
      done();
      return;
    }
    reply.header('retry-after', seconds);
    const details = `${max} requests in ${windowMs} ms`;
    done(inputError('rate_limited', 'This key makes too many requests; try again later', details));
  });
}
