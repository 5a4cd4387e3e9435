import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { inputError } from '../../base/errors.ts';
import type { System } from '../../context.ts';
import type { RouteMetrics } from '../../telemetry/metrics.ts';

const sane = /^[\x21-\x7e]{1,128}$/;

/** Returns the caller's id if it can be logged and returned unchanged, else a new one. */
export function chooseRequestId(raw: IncomingMessage): string {
  const given = raw.headers['x-request-id'];
  return typeof given === 'string' && sane.test(given) ? given : randomUUID();
}

const api = /^\/+(?:api\/+)?v1\//;

/** Sets common headers. Refuses two Host headers, since a proxy may have used the other. */
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
    /** `performance.now()`, or 0 if refused before the start. */
    startedAt: number;
  }
}

/**
 * Counts answers by route when they are ready. Waiting for their sending would cost two listeners
 * per request and measure the caller's network.
 */
export function addRequestMetrics(app: FastifyInstance, { metrics }: System): void {
  // tools/describe-api.ts inspects an app without serving.
  app.addHook('onListen', () => metrics.page());
  // Fastify's object per route and method is a cheaper key than text.
  const known = new Map<object, RouteMetrics>();
  const routeOf = (request: FastifyRequest): RouteMetrics => {
    const { config } = request.routeOptions;
    const found = known.get(config);
    if (found !== undefined) return found;
    const { url } = request.routeOptions;
    if (url === undefined) return metrics.route(request.method, 'unknown');
    const made = metrics.route(request.method, url);
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
