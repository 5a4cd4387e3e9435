import type { FastifyInstance } from 'fastify';
import type { System } from '../../context.ts';
import { readTraceparent } from '../../domain/trace.ts';
import type { Span } from '../../telemetry/tracing.ts';

declare module 'fastify' {
  interface FastifyRequest {
    span: Span | null;
  }
}

/** Machines call these every few seconds, and nobody looks for them in traces. */
const untraced = /^\/(?:health|metrics)(?:\/|$)/;

/** Makes a span of every request, as part of the caller's trace if it sends one. Without traces no hook is added. */
export function addTracing(app: FastifyInstance, { tracing }: Pick<System, 'tracing'>): void {
  if (tracing === null) return;
  app.decorateRequest('span', null);
  app.addHook('onRequest', (request, _reply, done) => {
    const { url: route } = request.routeOptions;
    if (route !== undefined && untraced.test(route)) return done();
    const { traceparent } = request.headers;
    // The path itself may hold ids of people.
    const span = tracing.begin(route === undefined ? request.method : `${request.method} ${route}`, {
      kind: 'server',
      parent: readTraceparent(typeof traceparent === 'string' ? traceparent : null),
      attributes: {
        'http.request.method': request.method,
        'url.scheme': request.protocol,
        'sluice.request_id': request.id,
        ...(route !== undefined && { 'http.route': route }),
      },
    });
    request.span = span;
    tracing.within(span, done);
  });
  // A body is read in the context of its connection.
  app.addHook('preValidation', ({ span }, _reply, done) => {
    if (span === null) done();
    else tracing.within(span, done);
  });
  app.addHook('onResponse', ({ span }, reply, done) => {
    if (span !== null) {
      const { statusCode } = reply;
      span.set({ 'http.response.status_code': statusCode });
      if (statusCode >= 500) span.fail(String(statusCode));
      span.end();
    }
    done();
  });
}
