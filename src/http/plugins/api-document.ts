import { createHash } from 'node:crypto';
import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { stringify } from 'yaml';
import type { System } from '../../context.ts';
import { type ApiDocument, documentFrame, finishDocument, responseKey } from '../api-document.ts';
import { baseUrl } from '../page.ts';
import { namesTag } from '../request-headers.ts';
import { responseName } from '../schemas/answers.ts';
import { undocumented } from './validation.ts';

/** Stands in the text where the address of the server belongs, which depends on how it was asked for. */
const addressMark = 'sluice-server-address';

const formats = {
  json: { type: 'application/json; charset=utf-8', render: JSON.stringify, mark: `"${addressMark}"` },
  yaml: {
    type: 'application/yaml; charset=utf-8',
    render: (value: unknown) => stringify(value),
    mark: addressMark,
  },
} as const;

interface Rendered {
  readonly before: string;
  readonly after: string;
  /** Of both. */
  readonly digest: string;
}

/** The OpenAPI document of an app as text. Made once: anybody may ask for it, and YAML takes as long as a hundred records. */
export class DocumentText {
  readonly #app: FastifyInstance;
  readonly #rendered = new Map<keyof typeof formats, Rendered>();

  /** The app must be ready when it is first sent. */
  constructor(app: FastifyInstance) {
    this.#app = app;
  }

  /** Answers with the document, or with 304 to a caller who has it. */
  send(
    request: FastifyRequest,
    reply: FastifyReply,
    format: keyof typeof formats,
    address: string,
  ): FastifyReply {
    const { before, after, digest } = this.#render(format);
    const hash = createHash('sha256').update(`${digest} ${address}`).digest('hex');
    const etag = `"${hash}"`;
    reply.header('etag', etag).header('cache-control', 'no-cache');
    if (namesTag(request.headers['if-none-match'], etag)) return reply.code(304).send();
    // A text in JSON is one in YAML too.
    return reply.type(formats[format].type).send(`${before}${JSON.stringify(address)}${after}`);
  }

  #render(format: keyof typeof formats): Rendered {
    const known = this.#rendered.get(format);
    if (known !== undefined) return known;
    const { render, mark } = formats[format];
    const text = render({ ...this.#app.swagger(), servers: [{ url: addressMark }] });
    const [before = '', after = ''] = text.split(mark);
    const digest = createHash('sha256').update(text).digest('hex');
    const rendered = { before, after, digest };
    this.#rendered.set(format, rendered);
    return rendered;
  }
}

/**
 * Collects the schemas of the routes that are registered after it into one document: `app.swagger()`, once the app is
 * ready.
 */
export function addApiDocument(app: FastifyInstance, components: readonly object[]): void {
  const names = new Map<string, string>();
  for (const component of components) app.addSchema(component);
  app.register(swagger, {
    openapi: documentFrame() as object,
    convertConstToEnum: false,
    refResolver: { buildLocalReference: (json, _base, _fragment, i) => String(json['$id'] ?? `schema-${i}`) },
    // What a key must allow is said once, to the hook that checks it. A route without a scope wants no key of ours. The document
    // has it in words: OpenAPI 3.1 lets a list of roles stand with any scheme, but programs that read it know them from OAuth only.
    transform: ({ schema, url, route }) => {
      const scope = route.config?.scope;
      const security = scope === undefined ? (schema?.security ?? []) : [{ apiKey: [] }];
      const answers = Object.entries((schema?.response ?? {}) as Record<string, { [responseName]?: string }>);
      for (const [status, { [responseName]: name }] of answers) {
        if (name !== undefined) names.set(responseKey(schema?.operationId ?? '', status), name);
      }
      const { querystring, description = '', ...described } = schema ?? {};
      const needs = scope === undefined || scope === 'any' ? '' : ` The key needs the scope \`${scope}\`.`;
      const isHidden = (querystring as { [undocumented]?: true } | undefined)?.[undocumented] === true;
      return {
        url,
        schema: {
          ...described,
          description: description + needs,
          ...(!isHidden && { querystring }),
          security,
        },
      };
    },
    transformObject: (found) => {
      if (!('openapiObject' in found)) throw new Error('the document is to be OpenAPI');
      return finishDocument(found.openapiObject as unknown as ApiDocument, names) as object;
    },
  });
}

/**
 * Everything from here. The plugin's own policy would have browsers ask for the scripts over https, which a server on plain
 * http does not answer. Styles alone may be inline: the page sets some while it runs.
 */
const contentSecurityPolicy = {
  'default-src': "'self'",
  'img-src': "'self' data:",
  'style-src': "'self' 'unsafe-inline'",
  'object-src': "'none'",
  'base-uri': "'none'",
  'frame-ancestors': "'none'",
};

/** The paths below `/docs` at which the page and others find the document. */
const documentPaths: Readonly<Record<string, 'json' | 'yaml'>> = {
  '/docs/json': 'json',
  '/docs/yaml': 'yaml',
};

/** The document as a page for people at `/docs`, with its scripts and styles from the package. */
export function addApiDocs(app: FastifyInstance, { config }: System, document: DocumentText): void {
  app.register(swaggerUi, {
    routePrefix: '/docs',
    theme: { title: 'sluice' },
    uiConfig: { layout: 'BaseLayout', deepLinking: true, defaultModelsExpandDepth: 0 },
    staticCSP: contentSecurityPolicy,
    uiHooks: {
      // The package would make the text anew for every request.
      preHandler: (request, reply, done) => {
        const format = documentPaths[request.routeOptions.url ?? ''];
        if (format === undefined) done();
        else document.send(request, reply, format, baseUrl(request, config.publicUrl));
      },
    },
  });
}
