import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifySchema } from 'fastify';
import { type TSchema, Type } from 'typebox';
import { createTokenCheck } from '../../access/admin-login.ts';
import { withExamples } from '../../api/schema.ts';
import { chooseEncoding, consolePath, readConsoleAssets, renderShell } from '../../console/assets.ts';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import { readPackage } from '../../package-root.ts';
import { baseUrl } from '../page.ts';
import type { DocumentText } from '../plugins/api-document.ts';
import { conditionHeaders, namesTag } from '../request-headers.ts';
import { errorAnswers, named, responseName } from '../schemas/answers.ts';

const link = (path: string, description: string) =>
  Type.String({ format: 'uri', description, examples: [`https://sluice.example.com${path}`] });

const showServiceSchema = {
  operationId: 'showService',
  summary: 'Say what this is',
  description: 'By `Accept`: a page for people (`text/html`), or JSON.',
  tags: ['documentation'],
  response: {
    200: {
      description: 'What answers here, and where to go on.',
      headers: named('Vary'),
      content: {
        'application/json': {
          schema: Type.Object(
            {
              service: Type.Literal('sluice', { description: 'Always `sluice`.' }),
              version: Type.String({ description: 'Of the program.', examples: ['0.1.0'] }),
              links: Type.Object(
                {
                  health: link('/health/ready', 'Whether it is ready.'),
                  docs: link('/docs', 'The interface, as a page.'),
                  openapi: link('/openapi.json', 'The interface, for programs.'),
                  console: link(consolePath, 'Everything, in a browser.'),
                },
                { additionalProperties: false, description: 'Where to go on.' },
              ),
            },
            { additionalProperties: false },
          ),
        },
        'text/html': withExamples(Type.String({ description: 'The same, as a page.' }), {
          page: { summary: 'Its beginning', value: '<!doctype html>\n<html lang="en">' },
        }),
      },
    },
    ...errorAnswers('internal_error', 'unavailable'),
  },
} satisfies FastifySchema;

const contentSecurityPolicy =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** What stands at the address itself: for people who open it in a browser, and for programs that lost their path. */
export function showService(app: FastifyInstance, { config }: System): void {
  const { version } = readPackage();
  const paths = {
    health: '/health/ready',
    docs: '/docs',
    openapi: '/openapi.json',
    console: consolePath,
  };
  const page = renderPage(version, paths);
  app.get('/', { schema: showServiceSchema }, (request, reply) => {
    reply.header('vary', 'accept');
    if (request.type(['json', 'html']) === 'html') {
      reply
        .type('text/html; charset=utf-8')
        .header('content-security-policy', contentSecurityPolicy)
        .send(page);
      return;
    }
    const base = baseUrl(request, config.publicUrl);
    const links = Object.fromEntries(Object.entries(paths).map(([name, path]) => [name, base + path]));
    reply.send({ service: 'sluice', version, links });
  });
}

const titles: Readonly<Record<string, string>> = {
  health: 'whether it is ready',
  docs: 'the interface, to read and to try',
  openapi: 'the interface, for programs',
  console: 'everything, to see and to do',
};

/** Links are relative: a proxy may serve it below a path. */
function renderPage(version: string, paths: Readonly<Record<string, string>>): string {
  const items = Object.entries(paths).map(
    ([name, path]) => `<li><a href="${path.slice(1)}">${path}</a>: ${titles[name]}</li>`,
  );
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>sluice</title>
<style>body { font: 16px/1.5 system-ui, sans-serif; max-width: 40em; margin: 3em auto; padding: 0 1em }</style>
<h1>sluice</h1>
<p>Loads users, companies and events into Postgres, and exports them. Version ${version}. Calls want an API key:
<code>Authorization: Token &lt;API_KEY&gt;</code>.</p>
<ul>
${items.join('\n')}
</ul>
</html>
`;
}

/** Everything from here, and nothing that is written into the page. */
const pageHeaders = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cache-control': 'no-cache',
} as const;

/** The console's page, which is the same at every address below, and its files. Not in the document. */
export function showConsole(app: FastifyInstance, { config }: System): void {
  app.register(async (scope) => {
    const assets = await readConsoleAssets();
    // Run from the sources, before anything was built.
    if (assets === null) return;
    const prefix = config.publicUrl === null ? '' : new URL(config.publicUrl).pathname.replace(/\/+$/, '');
    const page = renderShell(assets.manifest, prefix);
    const etag = `"${createHash('sha256').update(page).digest('hex')}"`;
    // The operator of an overloaded service must reach the console. The files are in memory, and the same for everybody.
    const hidden = { config: { alwaysServed: true }, schema: { hide: true } } as const;
    for (const path of [consolePath, `${consolePath}/*`]) {
      scope.get(path, hidden, (request, reply) => {
        reply.headers(pageHeaders).header('etag', etag);
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

const showLivenessSchema = {
  operationId: 'showLiveness',
  summary: 'Is the process alive?',
  description: 'Answers as long as the process does, whatever else is away. Wants no key.',
  tags: ['operations'],
  response: {
    200: {
      description: 'It is.',
      content: {
        'application/json': {
          schema: Type.Object(
            { status: Type.Literal('live', { description: 'Always `live`.' }) },
            { additionalProperties: false },
          ),
        },
      },
    },
  },
} satisfies FastifySchema;

/** Answers as long as the event loop does. Asks nobody: a database that is away is no reason to restart this process. */
export function showLiveness(app: FastifyInstance): void {
  const options = { config: { alwaysServed: true }, schema: showLivenessSchema } as const;
  app.get('/health/live', options, (_request, reply) => {
    reply.header('cache-control', 'no-store').send({ status: 'live' });
  });
}

const part = (description: string) => Type.Enum(['ok', 'away'], { type: 'string', description });

const parts = Type.Object(
  {
    database: part('PostgreSQL.'),
    queue: part('What wakes workers.'),
    storage: part('Where files are kept.'),
  },
  { additionalProperties: false, description: 'What the service stands on.' },
);

const showReadinessSchema = {
  operationId: 'showReadiness',
  summary: 'Can the service be used?',
  description:
    'Looks at everything the service stands on, and answers within two seconds even if some of it hangs. With the queue alone away it is `degraded`: uploads are accepted, and loaded when the queue is back. Wants no key.',
  tags: ['operations'],
  response: {
    200: {
      description: 'It can.',
      content: { 'application/json': { schema: report('ready', 'degraded') } },
    },
    ...errorAnswers('internal_error'),
    503: {
      description: 'Database or storage are away, or the service is about to stop.',
      headers: named('Retry-After'),
      content: { 'application/json': { schema: report('not_ready') } },
    },
  },
} satisfies FastifySchema;

function report(...statuses: readonly string[]): TSchema {
  const status = Type.Enum([...statuses], { type: 'string', description: 'The sum of it.' });
  return Type.Object({ status, parts }, { additionalProperties: false });
}

const retryAfterSeconds = '5';

/** Whether to send requests here. Says what is away and not why: that is in the log. */
export function showReadiness(app: FastifyInstance, { health }: System, state: { closing: boolean }): void {
  app.addHook('preClose', async () => {
    state.closing = true;
  });
  const options = { config: { alwaysServed: true }, schema: showReadinessSchema } as const;
  app.get('/health/ready', options, async (_request, reply) => {
    const { status: found, parts } = await health.check();
    const status = state.closing ? 'not_ready' : found;
    reply.header('cache-control', 'no-store');
    if (status === 'not_ready') reply.code(503).header('retry-after', retryAfterSeconds);
    return reply.send({ status, parts });
  });
}

const sample = '# HELP sluice_up Whether the process answers.\n# TYPE sluice_up gauge\nsluice_up 1\n';

const page = withExamples(Type.String({ description: 'One figure a line.' }), {
  figures: { summary: 'One figure', value: sample },
});

const showMetricsSchema: FastifySchema = {
  operationId: 'showMetrics',
  summary: 'Show the figures of the service',
  description:
    "For Prometheus, in its text format. Holds no tenant's data. Where METRICS_TOKEN is set: `Authorization: Bearer <METRICS_TOKEN>`.",
  tags: ['operations'],
  security: [{}, { metricsToken: [] }],
  response: {
    200: { description: 'The figures.', content: { 'text/plain': page } },
    ...errorAnswers('internal_error'),
    // The scheme that is expected here is another than everywhere else.
    401: { ...errorAnswers('invalid_api_key')[401], headers: {}, [responseName]: undefined },
  },
};

/** For Prometheus. Open, unless METRICS_TOKEN is set: the figures show nothing of any tenant. */
export function showMetrics(app: FastifyInstance, { metrics, config }: System): void {
  const mayRead = createTokenCheck(config.metricsToken);
  const options = { config: { alwaysServed: true }, schema: showMetricsSchema } as const;
  app.get('/metrics', options, async (request, reply) => {
    if (!mayRead(request.headers.authorization)) {
      reply.header('www-authenticate', 'Bearer');
      const details = 'the header Authorization: Bearer <METRICS_TOKEN>';
      throw inputError('invalid_api_key', 'Unauthorized - Invalid token', details);
    }
    const { contentType, text } = await metrics.render();
    return reply.type(contentType).send(text);
  });
}

const showDocumentSchema = {
  operationId: 'showDocument',
  summary: 'Show this document',
  description: 'The description of this interface in OpenAPI 3.1. For people: `/docs`.',
  tags: ['documentation'],
  headers: Type.Object(conditionHeaders),
  response: {
    200: {
      description: 'The document.',
      headers: named('ETag', 'Cache-Control'),
      content: {
        'application/json': {
          schema: Type.Object(
            {
              openapi: Type.String({
                pattern: '^3\\.1\\.',
                description: 'The version of OpenAPI.',
                examples: ['3.1.0'],
              }),
            },
            { additionalProperties: true },
          ),
        },
      },
    },
    304: { type: 'null', description: 'The caller has it already.', headers: named('ETag') },
    ...errorAnswers('rate_limited', 'internal_error', 'unavailable'),
  },
} satisfies FastifySchema;

/** The description of this interface, with the address at which it was asked for. */
export function showDocument(app: FastifyInstance, { config }: System, document: DocumentText): void {
  app.get('/openapi.json', { schema: showDocumentSchema }, (request, reply) => {
    document.send(request, reply, 'json', baseUrl(request, config.publicUrl));
  });
}
