import { readPackage } from '../package-root.ts';
import { answerHeaders } from './schemas/answers.ts';
import { exampleOf } from './schemas/example.ts';

export interface ApiDocument {
  readonly openapi: string;
  readonly info: object;
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string }[];
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

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly description?: string;
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

/** Of a key: the scopes that it must have. */
type SecurityRequirement = Readonly<Record<string, readonly string[]>>;

const info = {
  title: 'sluice',
  description: `Loads users, companies and events into Postgres: single records, arrays and files of any size.

- Every answer carries \`x-request-id\`. Refusals carry the error record, with every problem found; its codes are in docs/errors.md.
- A trailing slash, and slashes that are doubled, are accepted on every path. \`HEAD\` answers as \`GET\`, without the body. A method that a path does not have is 405 with \`Allow\`, an unknown path 404, also without a key.
- Lists refuse parameters that they do not know, except those that begin with \`_\`, which some clients add so that no cache answers.
- Times are ISO 8601 in UTC.`,
  contact: { name: 'The operator of this service' },
  license: { name: 'MIT', identifier: 'MIT' },
};

const tags = [
  { name: 'ingestion', description: 'Single records, answered when they are committed.' },
  { name: 'loads', description: 'Files and arrays of any size, loaded by a background job.' },
  { name: 'mappings', description: 'How files are loaded, kept under a name.' },
  { name: 'deletions', description: 'Taking out what is stored of a user or company.' },
  { name: 'exports', description: 'Files of users, companies and events, written by a background job.' },
  { name: 'jobs', description: 'What became of them.' },
  { name: 'schedules', description: 'Loads and exports by the clock.' },
  { name: 'notifications', description: 'Who is notified of the ends of jobs, and what was sent.' },
  { name: 'reading', description: 'What is stored of users and companies, as it is at this moment.' },
  { name: 'lookups', description: 'What exports can be filtered by.' },
  { name: 'keys', description: 'Whether a key is good.' },
  { name: 'operations', description: 'For those who run the service.' },
  { name: 'documentation', description: 'This document.' },
];

/** What the document says besides the routes. */
export function documentFrame() {
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
          description:
            '`Token <API_KEY>`: the word Token, a blank, and a key that `sluice keys create` made. `Bearer <API_KEY>`, the key alone, and `Basic` with the key as user name are accepted too. An operation says which scope the key must have.',
        },
        metricsToken: {
          type: 'http',
          scheme: 'bearer',
          description: 'Where METRICS_TOKEN is set: its value.',
        },
      },
    },
  } as const;
}

/** The names of answers that stand under components, by `responseKey`. */
export type ResponseNames = ReadonlyMap<string, string>;

export function responseKey(operationId: string, status: string): string {
  return `${operationId} ${status}`;
}

/** Puts in what all operations share, and everything in an order that does not depend on that of the routes. */
export function finishDocument(document: ApiDocument, names: ResponseNames): ApiDocument {
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
    servers: [{ url: '/' }],
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

/** Schemas of routes only name their headers, and give examples of what is not JSON. */
function finishAnswer(answer: Answer, schemas: ApiDocument['components']['schemas']): Answer {
  const { description, headers = {}, content, ...rest } = answer;
  const named = ['x-request-id', ...Object.keys(headers)];
  const references = named.map((name) => [name, reference(name, headers[name])] as const);
  const finished = { description, headers: Object.fromEntries(references), ...rest };
  if (content === undefined) return finished;
  return { ...finished, content: mapEntries(content, (type, media) => withExample(type, media, schemas)) };
}

/** Moves the examples of a route to where they belong, as the plugin does for requests only; of JSON there is always one. */
function withExample(
  type: string,
  { schema: described }: MediaType,
  schemas: ApiDocument['components']['schemas'],
): MediaType {
  const { 'x-examples': given, ...schema } = described as { 'x-examples'?: MediaType['examples'] };
  if (given !== undefined) return { schema, examples: given };
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
