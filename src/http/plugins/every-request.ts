import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { inputError } from '../../base/errors.ts';
import type { System } from '../../context.ts';
import type { RouteMetrics } from '../../telemetry/metrics.ts';

const sane = /^[\x21-\x7e]{1,128}$/;

/** Keeps the caller's request id if it is safe in logs and responses. */
export function chooseRequestId(raw: IncomingMessage): string {
  const id = raw.headers['x-request-id'];
  return typeof id === 'string' && sane.test(id) ? id : randomUUID();
}

const api = /^\/+(?:api\/+)?v1\//;

/**
 * Refuses a request with two Host headers, because a proxy in front may use a different one than
 * this service.
 */
export function addStandardHeaders(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    setStandardHeaders(request, reply);
    done(
      hasTwoHosts(request.raw) ? inputError('invalid_field', 'The request has two Host headers') : undefined,
    );
  });
}

export function setStandardHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('x-request-id', request.id).header('x-content-type-options', 'nosniff');
  if (api.test(request.url) || request.routeOptions.config.keyInBody === true)
    reply.header('cache-control', 'no-store');
}

function hasTwoHosts({ rawHeaders }: IncomingMessage): boolean {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts++;
  }
  return hosts > 1;
}

declare module 'fastify' {
  interface FastifyRequest {
    /**
     * Time at which the request started, on the clock of `performance.now()`. 0 if the request was
     * refused before this time was recorded.
     */
    startedAt: number;
  }
}

/**
 * Counts responses when they are ready. Counting sent responses would need two listeners per
 * request, and would measure the caller's network.
 */
export function addRequestMetrics(app: FastifyInstance, { metrics }: System): void {
  // Only a server needs the metrics page. tools/describe-api.ts opens an app that does not listen.
  app.addHook('onListen', () => metrics.page());
  // Fastify has one `config` object per route and method. Objects are faster keys than strings.
  const routes = new Map<object, RouteMetrics>();
  const routeOf = (request: FastifyRequest): RouteMetrics => {
    const { config } = request.routeOptions;
    const existing = routes.get(config);
    if (existing !== undefined) return existing;
    const { url } = request.routeOptions;
    if (url === undefined) return metrics.route(request.method, 'unknown');
    const route = metrics.route(request.method, url);
    routes.set(config, route);
    return route;
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
