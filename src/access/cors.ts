/* Lets web pages send records if the environment of the key allows their origin. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { inputError, TransientError } from '../base/errors.ts';
import { RECORD_DEADLINE_MS } from '../base/limits.ts';
import type { System } from '../context.ts';
import { formOf, pathOf } from '../http/paths.ts';
import { createProbe } from '../telemetry/health/ready.ts';
import { listEnvironments } from './environment-store.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /** Refuses an origin that the caller's environment does not allow. The caller must be known. */
    checkOrigin: (request: FastifyRequest, reply: FastifyReply) => Error | undefined;
  }
  interface FastifyRequest {
    /** Environments that allow the origin. `null` if the origin was not checked. */
    allowedBy: ReadonlySet<number> | null;
  }
}

const cacheMs = 1_000;
const preflightSeconds = 600;
const maxHeadersLength = 1_000;

type Origins = ReadonlyMap<string, ReadonlySet<number>>;

/** A preflight request has no key, so it suffices that any environment allows the origin. */
export function addCors(app: FastifyInstance, { db }: Pick<System, 'db'>): void {
  const paths: RegExp[] = [];
  app.addHook('onRoute', ({ url, config }) => {
    if (config?.scope === 'ingest') paths.push(formOf(url));
  });
  const read = createProbe(() => readOrigins(db), {
    deadlineMs: RECORD_DEADLINE_MS,
    keepMs: (_, failed) => (failed ? 0 : cacheMs),
  });
  app.decorateRequest('allowedBy', null);
  app.decorate('checkOrigin', checkOrigin);
  app.addHook('onRequest', (request, reply, done) => {
    const { origin } = request.headers;
    const isPreflight = request.method === 'OPTIONS' && paths.some((form) => form.test(pathOf(request.url)));
    if (origin === undefined || !(isPreflight || request.routeOptions.config.scope === 'ingest')) {
      done();
      return;
    }
    read().then((origins) => {
      if ('error' in origins) return done(new TransientError('the allowed origins cannot be read'));
      request.allowedBy = origins.value.get(origin) ?? new Set();
      reply.header('vary', 'Origin');
      if (request.allowedBy.size > 0) allow(reply, origin);
      if (isPreflight && request.allowedBy.size > 0) answerPreflight(request, reply);
      else done();
    }, done);
  });
}

function allow(reply: FastifyReply, origin: string): void {
  reply
    .header('access-control-allow-origin', origin)
    // Some SDKs require this header. The header is harmless, because the pages of other sites
    // cannot use the console's cookie.
    .header('access-control-allow-credentials', 'true')
    .header('access-control-expose-headers', 'retry-after, x-request-id');
}

function answerPreflight({ headers }: FastifyRequest, reply: FastifyReply): void {
  const headerNames = String(headers['access-control-request-headers'] ?? '').slice(0, maxHeadersLength);
  reply
    .code(204)
    .header('access-control-allow-methods', 'POST, GET')
    .header('access-control-allow-headers', headerNames)
    .header('access-control-max-age', String(preflightSeconds))
    .send();
}

function checkOrigin({ caller, allowedBy }: FastifyRequest, reply: FastifyReply): Error | undefined {
  if (caller === null || allowedBy === null || allowedBy.has(caller.environment.environmentId))
    return undefined;
  reply.removeHeader('access-control-allow-origin');
  if (!caller.scopes.includes('browser')) return undefined;
  const details = 'sluice env origins --set says which pages may send';
  return inputError(
    'insufficient_scope',
    'The environment of the key takes no records from this page',
    details,
  );
}

async function readOrigins(db: System['db']): Promise<Origins> {
  const origins = new Map<string, Set<number>>();
  for (const { environmentId, allowedOrigins } of await listEnvironments(db)) {
    for (const origin of allowedOrigins) {
      origins.set(origin, (origins.get(origin) ?? new Set()).add(environmentId));
    }
  }
  return origins;
}
