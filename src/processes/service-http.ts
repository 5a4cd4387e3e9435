import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { type TSchema, Type } from 'typebox';
import { digestKey, matchesDigest } from '../access/key-store.ts';
import { inputError } from '../base/errors.ts';
import { readPackage } from '../base/package-root.ts';
import { chooseEncoding, readConsoleAssets, renderShell } from '../console/assets.ts';
import type { System } from '../context.ts';
import { errorAnswers, named, responseName } from '../http/answers.ts';
import { conditionHeaders, namesTag } from '../http/parameters.ts';
import { consolePath } from '../http/paths.ts';
import { type Route, route } from '../http/route.ts';
import { choice, exampleText, item, object, text, url } from '../http/schema.ts';

const places = {
  health: { path: '/health/ready', what: 'Health of the service' },
  docs: { path: '/docs', what: 'API reference' },
  openapi: { path: '/openapi.json', what: 'API description in OpenAPI' },
  console: { path: consolePath, what: 'Console' },
} as const;

type Place = keyof typeof places;

const mapPlaces = <T>(make: (place: (typeof places)[Place]) => T): Record<Place, T> =>
  Object.fromEntries(Object.entries(places).map(([name, place]) => [name, make(place)])) as Record<Place, T>;

const showService = route({
  at: 'GET /',
  operationId: 'showService',
  summary: 'Show the service',
  description: 'Returns name and version of the service, and where to go from here.',
  access: 'open',
  answer: {
    description: 'Name and version of the service, and links.',
    schema: item({
      service: Type.Literal('sluice', { description: 'Always `sluice`.' }),
      version: text('Version of the program.', '0.1.0'),
      links: object(
        'Links.',
        mapPlaces(({ path, what }) => url(`${what}.`, `https://sluice.example.com${path}`)),
      ),
    }),
  },
  refuses: ['internal_error', 'unavailable'],
  handle: async ({ base }) => {
    const root = base();
    const { version } = readPackage();
    return { service: 'sluice', version, links: mapPlaces(({ path }) => root + path) } as const;
  },
});

/** The page loads content only from this server, without inline scripts or styles. */
const consoleHeaders = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cache-control': 'no-cache',
} as const;

/** All paths under the console return the same page. The API document omits these routes. */
export function showConsole(app: FastifyInstance, { config }: System): void {
  app.register(async (scope) => {
    const assets = await readConsoleAssets();
    if (assets === null) return;
    const prefix = config.publicUrl === null ? '' : new URL(config.publicUrl).pathname.replace(/\/+$/, '');
    const page = renderShell(assets.manifest, prefix);
    const etag = `"${createHash('sha256').update(page).digest('hex')}"`;
    // Even under overload, the operator needs the console. Its files are in memory and the same for
    // everybody.
    const hidden = { config: { alwaysServed: true }, schema: { hide: true } } as const;
    for (const path of [consolePath, `${consolePath}/*`]) {
      scope.get(path, hidden, (request, reply) => {
        reply.headers(consoleHeaders).header('etag', etag);
        if (namesTag(request.headers['if-none-match'], etag)) reply.code(304).send();
        else reply.type('text/html; charset=utf-8').send(page);
      });
    }
    scope.get<{ Params: { name: string } }>(`${consolePath}/assets/:name`, hidden, (request, reply) => {
      const asset = assets.files.get(request.params.name);
      if (asset === undefined) throw inputError('route_not_found', 'There is no such file', '');
      const encoding = chooseEncoding(request.headers['accept-encoding']);
      if (encoding !== 'identity') reply.header('content-encoding', encoding);
      reply
        .header('cache-control', 'public, max-age=31536000, immutable')
        .header('vary', 'accept-encoding')
        .type(asset.type)
        .send(asset.bodies[encoding]);
    });
  });
}

const alwaysServed = { alwaysServed: true } as const;

/** If the database is unavailable, restarting this process would not help. */
const showLiveness = route({
  at: 'GET /health/live',
  operationId: 'showLiveness',
  summary: 'Check liveness',
  description: 'Answers as long as the process runs, even if everything else is away. No key is required.',
  access: 'open',
  config: alwaysServed,
  answer: {
    description: 'The process runs.',
    schema: item({ status: Type.Literal('live', { description: 'Always `live`.' }) }),
  },
  handle: async ({ reply }) => reply.header('cache-control', 'no-store').send({ status: 'live' }),
});

const part = (description: string) => choice(['ok', 'away'], description);

const parts = object('The parts that the service depends on.', {
  database: part('PostgreSQL.'),
  queue: part('The queue that wakes workers.'),
  storage: part('The file storage.'),
});

const readiness = (...statuses: readonly string[]): TSchema =>
  item({ status: choice(statuses, 'Status of the service.'), parts });

const retryAfterSeconds = '5';

/** The log has the reason why a part is unavailable. */
const showReadiness = route({
  at: 'GET /health/ready',
  operationId: 'showReadiness',
  summary: 'Check readiness',
  description:
    'Checks every part that the service depends on, and answers within two seconds even if some of them hang. If only the queue is away, the status is `degraded`: uploads are accepted, and loaded once the queue is back. No key is required.',
  access: 'open',
  config: alwaysServed,
  answer: { description: 'The service is ready.', schema: readiness('ready', 'degraded') },
  answers: {
    503: {
      description: 'The database or the storage is away, or the service is about to stop.',
      headers: named('Retry-After'),
      content: { 'application/json': { schema: readiness('not_ready') } },
    },
  },
  refuses: ['internal_error'],
  handle: async ({ system: { health }, server: { state }, reply }) => {
    const { status: checkedStatus, parts } = await health.check();
    const status = state.closing ? 'not_ready' : checkedStatus;
    reply.header('cache-control', 'no-store');
    if (status === 'not_ready') reply.code(503).header('retry-after', retryAfterSeconds);
    return reply.send({ status, parts });
  },
});

const sample = '# HELP sluice_up Whether the process answers.\n# TYPE sluice_up gauge\nsluice_up 1\n';

/**
 * Returns a function that compares a request's token with `token` in constant time. If `token` is
 * `null`, every request passes.
 */
function createTokenCheck(token: string | null): (header: string | undefined) => boolean {
  if (token === null) return () => true;
  const digest = digestKey(token);
  return (header) => matchesDigest(/^bearer +(\S+)$/i.exec(header?.trim() ?? '')?.[1] ?? '', digest);
}

/**
 * Metrics contain no data of environments, so they require no API key, but only METRICS_TOKEN if it
 * is set.
 */
const showMetrics = route({
  at: 'GET /metrics',
  operationId: 'showMetrics',
  summary: 'Show metrics',
  description:
    'Returns metrics in the text format of Prometheus. They hold no data of tenants. If METRICS_TOKEN is set, send `Authorization: Bearer <METRICS_TOKEN>`.',
  access: 'open',
  config: alwaysServed,
  security: [{}, { metricsToken: [] }],
  answer: {
    description: 'The metrics.',
    content: { 'text/plain': exampleText('One metric per line.', 'figures', 'One metric', sample) },
  },
  refuses: ['internal_error'],
  // The 401 response differs, because the route checks METRICS_TOKEN instead of a key.
  answers: { 401: { ...errorAnswers('invalid_api_key')[401], headers: {}, [responseName]: undefined } },
  prepare: ({ config }) => createTokenCheck(config.metricsToken),
  handle: async ({ system: { metrics }, prepared: mayRead, request, reply }) => {
    if (!mayRead(request.headers.authorization)) {
      reply.header('www-authenticate', 'Bearer');
      const details = 'the header Authorization: Bearer <METRICS_TOKEN>';
      throw inputError('invalid_api_key', 'Unauthorized - Invalid token', details);
    }
    const { contentType, text } = await metrics.render();
    return reply.type(contentType).send(text);
  },
});

const showDocument = route({
  at: 'GET /openapi.json',
  operationId: 'showDocument',
  summary: 'Show this document',
  description: 'Returns the description of this API in OpenAPI 3.1. `/docs` shows it as a page.',
  access: 'open',
  headers: conditionHeaders,
  answer: {
    description: 'The document.',
    headers: ['ETag', 'Cache-Control'],
    schema: Type.Object(
      {
        openapi: Type.String({
          pattern: '^3\\.1\\.',
          description: 'Version of OpenAPI.',
          examples: ['3.1.0'],
        }),
      },
      { additionalProperties: true },
    ),
  },
  answers: {
    304: { type: 'null', description: 'The caller has the document already.', headers: named('ETag') },
  },
  refuses: ['rate_limited', 'internal_error', 'unavailable'],
  handle: async ({ server, request, reply }) => server.document.send(request, reply, 'json'),
});

export const serviceRoutes: readonly Route[] = [showLiveness, showReadiness, showMetrics];

export const documentationRoutes: readonly Route[] = [showService, showDocument];
