import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { System } from '../../context.ts';
import type { RouteMetrics } from '../../telemetry/request-metrics.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The start on the clock of `performance.now()`; 0 if the request was refused before it began. */
    startedAt: number;
  }
}

/**
 * Counts every answer by the pattern of its route, when it is ready. Waiting until it is sent would cost two listeners per request, and
 * measure the network of the caller.
 */
export function addRequestMetrics(app: FastifyInstance, { metrics }: System): void {
  // An app that is only looked at (tools/describe-api.ts) is no process to watch.
  app.addHook('onListen', () => metrics.watchProcess());
  // Fastify has one such object per route and method, which is a cheaper key than a text of both.
  const known = new Map<object, RouteMetrics>();
  const routeOf = (request: FastifyRequest): RouteMetrics => {
    const { config } = request.routeOptions;
    const found = known.get(config);
    if (found !== undefined) return found;
    const { url } = request.routeOptions;
    if (url === undefined) return metrics.http.route(request.method, 'unknown');
    const made = metrics.http.route(request.method, url);
    known.set(config, made);
    return made;
  };
  app.decorateRequest('startedAt', 0);
  app.addHook('onRequest', (request, _reply, done) => {
    request.startedAt = performance.now();
    done();
  });
  app.addHook('onSend', (request, reply, _payload, done) => {
    const { startedAt } = request;
    const ms = startedAt === 0 ? 0 : performance.now() - startedAt;
    routeOf(request).ended(reply.statusCode, ms / 1_000);
    done();
  });
}
