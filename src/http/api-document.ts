import { createHash } from 'node:crypto';
import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { readPackage } from '../base/package-root.ts';
import type { System } from '../context.ts';
import { answerHeaders, exampleOf, responseName } from './answers.ts';
import { namesTag } from './parameters.ts';

export interface ApiDocument {
  readonly openapi: string;
  readonly info: { readonly description: string };
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly security: readonly SecurityRequirement[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, object>>;
    readonly responses: Readonly<Record<string, Answer>>;
    readonly headers: Readonly<Record<string, Header>>;
    readonly securitySchemes: Readonly<Record<string, object>>;
  };
}

export interface Operation {
  readonly operationId?: string;
  readonly summary?: string;
  readonly tags?: readonly string[];
  readonly security?: readonly SecurityRequirement[];
  readonly parameters?: readonly Parameter[];
  readonly description?: string;
  readonly requestBody?: {
    readonly description?: string;
    readonly content: Readonly<Record<string, MediaType>>;
  };
  readonly responses: Readonly<Record<string, Answer | Reference>>;
}

export interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly example?: unknown;
  readonly schema: object;
}

export interface Reference {
  readonly $ref: string;
}

export interface Answer {
  readonly description: string;
  readonly headers?: Readonly<Record<string, Header | Reference>>;
  readonly content?: Readonly<Record<string, MediaType>>;
}

export interface MediaType {
  readonly schema: object;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

export interface Header {
  readonly required?: boolean;
  readonly schema?: object;
}

type SecurityRequirement = Readonly<Record<string, readonly string[]>>;

const info = {
  title: 'sluice',
  description: `Loads users, companies and events into PostgreSQL: single records, arrays and files of any size.

- Every answer has \`x-request-id\`: the caller's own if it is valid, otherwise a new one.
- A refusal has the error record with every problem of the request, up to 100. docs/errors.md lists the codes.
- **Paths**: a trailing slash and doubled slashes are accepted. \`HEAD\` answers like \`GET\`, without the body. A method that a path does not support returns 405 with \`Allow\`. An unknown path returns 404, even without a key.
- **Pages**: send \`limit\` and the \`cursor\` of the page before, from the header \`Link\` or from \`metadata.cursor.after\`. A page has at most 1 MiB, or one item. \`page\` and \`per_page\` are refused.
- **Repeated requests**: \`Idempotency-Key\` makes a request safe to repeat for 24 hours. The same request gets the first answer again, and another request is refused. The key of a refused request can be used again.
- Unknown query parameters are ignored, except in loads.
- Times are ISO 8601 in UTC.`,
  contact: { name: 'The operator of this service' },
  license: { name: 'MIT', identifier: 'MIT' },
};

const keys = `Send \`Token <API_KEY>\`, \`Bearer <API_KEY>\`, the key alone, or \`Basic\` with the key as user name. \`sluice keys create\` makes a key.

A key sees only its environment: a job of another environment is 404. Each operation names the scope that the key must have:

- \`ingest\`: single records and batches
- \`browser\`: the same from pages (docs/how-to/sdks.md#a-site), without any other scope
- \`import\`: uploads and arrays, and changes of loads, schedules, rules, segments, failed inbox files and deliveries
- \`export\`: exports, their previews and links. Also required to cancel an export, and to change or run its schedule
- \`read\`: profiles, events, jobs, rejects, lookups, schedules, the inbox and deliveries
- \`delete\`: deletions, their previews, and the end of suppressions

401: the key is missing, unknown, revoked or expired. 403: it lacks the scope. Only administrators change keys and environments over HTTP: their console sessions began with \`ADMIN_KEY\` or with a link from the command line.`;

export const tags = [
  {
    name: 'ingestion',
    description: `Single records and batches. The answer is sent after the commit. The records of one key take effect in the order in which they arrive at a process.

- **Body**: JSON, plain or gzipped, of any media type. A single record has at most 1 MiB.
- **IDs** are strings of 1 to 256 bytes. A number becomes the string of its digits.
- **Properties** keep their JSON type. Undocumented keys outside \`metadata\` are properties too. Null removes a property of a profile.
- **503**: the record may be stored. Repeat it with an \`event_id\` or an \`Idempotency-Key\`.

SDKs of other products send to the paths that they know: docs/how-to/sdks.md.`,
  },
  {
    name: 'loads',
    description: `Files and arrays of any size, loaded by background jobs: docs/loads.md. docs/files.md describes the formats.

The loads of an environment take effect in order of acceptance. A request that is interrupted stores nothing.`,
  },
  { name: 'rules', description: 'Rules that records must obey: docs/rules.md.' },
  { name: 'deletions', description: 'Deletion of the stored data of users or companies: docs/deletion.md.' },
  {
    name: 'exports',
    description:
      'Files of users, companies and events, written by background jobs from one snapshot: docs/exports.md.',
  },
  {
    name: 'jobs',
    description:
      'Background jobs: progress, results, plans (docs/loads.md#plans), refused records (docs/loads.md#rejects) and undo (docs/undo.md).',
  },
  {
    name: 'schedules',
    description:
      'Loads and exports that run on a schedule (docs/schedules.md), and the inbox (docs/inbox.md).',
  },
  {
    name: 'notifications',
    description: 'Subscriptions to the ends of jobs, and deliveries: docs/notifications.md.',
  },
  {
    name: 'reading',
    description:
      'Stored users, companies, events and segments (docs/segments.md). Most clients resolve the IDs `.` and `..` as parts of a path: find these profiles in the lists.',
  },
  {
    name: 'lookups',
    description:
      'Items by which exports can be filtered. The operator defines most of them: docs/definitions.md.',
  },
  { name: 'keys', description: 'API keys, and sessions of the console.' },
  {
    name: 'operations',
    description: 'Health, metrics (docs/operations.md) and environments, for operators.',
  },
  { name: 'documentation', description: 'This document.' },
] as const;

export type Tag = (typeof tags)[number]['name'];

function documentFrame() {
  return {
    openapi: '3.1.0',
    info: { ...info, version: readPackage().version },
    tags,
    components: {
      securitySchemes: {
        apiKey: {
          type: 'apiKey',
          in: 'header',
          name: 'Authorization',
          description: keys,
        },
        metricsToken: {
          type: 'http',
          scheme: 'bearer',
          description: 'The value of METRICS_TOKEN, if it is set.',
        },
      },
    },
  } as const;
}

type ResponseNames = ReadonlyMap<string, string>;

function responseKey(operationId: string, status: string): string {
  return `${operationId} ${status}`;
}

/** Sorts the document, so that it does not depend on the order of routes. */
function finishDocument(document: ApiDocument, names: ResponseNames, url: string): ApiDocument {
  const { openapi, info, tags, components } = document;
  const shared: Record<string, Answer> = {};
  const finish = ({ operationId = '', responses, ...operation }: Operation): Operation => {
    const finished = Object.entries(responses).map(([status, answer]) => {
      const name = names.get(responseKey(operationId, status));
      if (name === undefined) return [status, finishAnswer(answer as Answer, components.schemas)] as const;
      shared[name] ??= finishAnswer(answer as Answer, components.schemas);
      return [status, { $ref: `#/components/responses/${name}` }] as const;
    });
    return { ...operation, operationId, responses: Object.fromEntries(finished) };
  };
  return {
    openapi,
    info,
    servers: [{ url }],
    tags,
    security: [{ apiKey: [] }],
    paths: mapValues(sortKeys(document.paths), (path) => mapValues(path, finish)),
    components: {
      schemas: sortKeys(components.schemas),
      responses: sortKeys(shared),
      headers: answerHeaders,
      securitySchemes: components.securitySchemes,
    },
  };
}

function finishAnswer(answer: Answer, schemas: ApiDocument['components']['schemas']): Answer {
  const { description, headers = {}, content, ...rest } = answer;
  const named = ['x-request-id', ...Object.keys(headers)];
  const references = named.map((name) => [name, reference(name, headers[name])] as const);
  const finished = { description, headers: Object.fromEntries(references), ...rest };
  if (content === undefined) return finished;
  return { ...finished, content: mapEntries(content, (type, media) => withExample(type, media, schemas)) };
}

/**
 * Moves the examples to the place that OpenAPI requires. The plugin moves them only in the schemas
 * of requests.
 */
function withExample(
  type: string,
  { schema: described }: MediaType,
  schemas: ApiDocument['components']['schemas'],
): MediaType {
  const { 'x-examples': examples, ...schema } = described as { 'x-examples'?: MediaType['examples'] };
  if (examples !== undefined) return { schema, examples };
  if (type !== 'application/json') return { schema };
  return { schema, examples: { answer: { value: exampleOf(schema, schemas) } } };
}

function reference(name: string, header: Header | Reference | undefined) {
  return name in answerHeaders ? { $ref: `#/components/headers/${name}` } : (header ?? {});
}

function mapValues<A, B>(object: Readonly<Record<string, A>>, change: (value: A) => B): Record<string, B> {
  return mapEntries(object, (_, value) => change(value));
}

function mapEntries<A, B>(
  object: Readonly<Record<string, A>>,
  change: (key: string, value: A) => B,
): Record<string, B> {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(key, value)]));
}

function sortKeys<T>(object: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * The OpenAPI document as JSON, which is also valid YAML. The text is created only once, because
 * anybody may request it.
 */
export class DocumentText {
  readonly #app: FastifyInstance;
  #cached: { readonly text: string; readonly etag: string } | undefined;

  constructor(app: FastifyInstance) {
    this.#app = app;
  }

  send(request: FastifyRequest, reply: FastifyReply, type: string): FastifyReply {
    this.#cached ??= this.#make();
    const { text, etag } = this.#cached;
    reply.header('etag', etag).header('cache-control', 'no-cache');
    if (namesTag(request.headers['if-none-match'], etag)) return reply.code(304).send();
    return reply.type(`application/${type}; charset=utf-8`).send(text);
  }

  #make() {
    const text = JSON.stringify(this.#app.swagger());
    return { text, etag: `"${createHash('sha256').update(text).digest('hex')}"` };
  }
}

/** Collects the schemas of all routes that are added after this call, for `app.swagger()`. */
export function addApiDocument(
  app: FastifyInstance,
  components: readonly object[],
  { config }: System,
): void {
  const names = new Map<string, string>();
  for (const component of components) app.addSchema(component);
  app.register(swagger, {
    openapi: documentFrame() as object,
    convertConstToEnum: false,
    refResolver: { buildLocalReference: (json, _base, _fragment, i) => String(json['$id'] ?? `schema-${i}`) },
    // OpenAPI 3.1 allows roles in `security` for all schemes, but tools support them only for
    // OAuth. Therefore, the description names the scope, and a hook checks it.
    transform: ({ schema, url, route }) => {
      const scope = route.config?.scope;
      const security = scope === undefined ? (schema?.security ?? []) : [{ apiKey: [] }];
      const answers = Object.entries((schema?.response ?? {}) as Record<string, { [responseName]?: string }>);
      for (const [status, { [responseName]: name }] of answers) {
        if (name !== undefined) names.set(responseKey(schema?.operationId ?? '', status), name);
      }
      const needs = scope === undefined || scope === 'any' ? '' : ` Required scope: \`${scope}\`.`;
      return { url, schema: { ...schema, description: (schema?.description ?? '') + needs, security } };
    },
    transformObject: (input) => {
      if (!('openapiObject' in input)) throw new Error('the document is to be OpenAPI');
      // Without PUBLIC_URL, paths are relative to the URL of the document.
      const url = config.publicUrl ?? '/';
      return finishDocument(input.openapiObject as unknown as ApiDocument, names, url) as object;
    },
  });
}

/**
 * Allows only content from this server. With the plugin's own policy, browsers would load scripts
 * over https, which a plain HTTP server does not offer. The page has some inline styles.
 */
const contentSecurityPolicy = {
  'default-src': "'self'",
  'img-src': "'self' data:",
  'style-src': "'self' 'unsafe-inline'",
  'object-src': "'none'",
  'base-uri': "'none'",
  'frame-ancestors': "'none'",
};

export function addApiDocs(app: FastifyInstance, document: DocumentText): void {
  app.register(swaggerUi, {
    routePrefix: '/docs',
    theme: { title: 'sluice' },
    uiConfig: { layout: 'BaseLayout', deepLinking: true, defaultModelsExpandDepth: 0 },
    staticCSP: contentSecurityPolicy,
    uiHooks: {
      // Without this hook, @fastify/swagger-ui would create the text of the document for each
      // request.
      preHandler: (request, reply, done) => {
        const [, type] = /^\/docs\/(json|yaml)$/.exec(request.routeOptions.url ?? '') ?? [];
        if (type === undefined) done();
        else document.send(request, reply, type);
      },
    },
  });
}
