import type { FastifyInstance, FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { withExamples } from '../../api/schema.ts';
import { consolePath } from '../../console/assets.ts';
import type { System } from '../../context.ts';
import { readPackage } from '../../package-root.ts';
import { baseUrl } from '../page.ts';
import { errorAnswers, named } from '../schemas/answers.ts';

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
