// A route declares its path, callers, input, response and work. `route` creates the schema and the
// handler from the declaration.
import type {
  FastifyContextConfig,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  FastifySchema,
  HTTPMethods,
} from 'fastify';
import { type Static, type TProperties, type TSchema, Type } from 'typebox';
import type { ErrorCode } from '../base/errors.ts';
import { compileSchema, throwProblems } from '../base/validation.ts';
import type { System } from '../context.ts';
import type { Scope } from '../domain/caller.ts';
import { actingAs } from '../postgres/acts.ts';
import { type AnswerHeader, errorAnswers, named } from './answers.ts';
import type { DocumentText, Tag } from './api-document.ts';
import { callerActor, environmentId, requireAdmin } from './caller.ts';
import { baseUrl } from './page.ts';
import { bodyBytes, readJsonObject } from './plugins/json-body.ts';
import type { ServerState } from './plugins/limits.ts';
import { type Example, withExamples } from './schema.ts';

/**
 * Decides which parser reads the body (`app.ts`). `raw`: none. `json`, `batch` and `deletion`: JSON
 * of different sizes. `sdk`: a batch or a form.
 */
export type BodyKind = 'raw' | 'form' | 'json' | 'batch' | 'sdk' | 'deletion';

export interface Route {
  readonly bodyKind: BodyKind;
  add(scope: FastifyInstance, system: System, server: Server, tag: string): void;
}

export interface Server {
  readonly state: ServerState;
  readonly document: DocumentText;
}

export interface Call<P = unknown, Q = unknown, B = unknown, O = unknown> {
  /** The system. The acts that it records name this caller. */
  readonly system: System;
  readonly server: Server;
  readonly prepared: O;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  readonly environment: number;
  base(): string;
}

type ReadOnly<T> = T extends readonly (infer Item)[]
  ? readonly ReadOnly<Item>[]
  : T extends object
    ? { readonly [Name in keyof T]: ReadOnly<T[Name]> }
    : T;

type Content = Readonly<Record<string, { readonly schema: TSchema }>>;

interface RouteOptions<P extends TSchema, Q extends TSchema, B extends TSchema, A extends TSchema> {
  readonly at: `${HTTPMethods} /${string}`;
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  /** `admin` requires an administrator's session, and `open` requires no key. */
  readonly access: Scope | 'any' | 'admin' | 'open';
  readonly config?: Omit<FastifyContextConfig, 'scope'>;
  /** Authorization of an open route, instead of a key. */
  readonly security?: FastifySchema['security'];
  readonly params?: P;
  readonly query?: Q;
  readonly headers?: TProperties;
  /** Schema of a JSON body, which is validated before the handler runs. */
  readonly json?: { readonly schema: B; readonly examples: Readonly<Record<string, Example>> };
  /** Schemas of bodies that the handler itself reads, by media type. */
  readonly content?: Content;
  /** The parser of the body. Default: `json` if the member `json` is set, otherwise `raw`. */
  readonly bodyKind?: BodyKind;
  readonly answer: {
    readonly status?: number;
    readonly description: string;
    readonly headers?: readonly AnswerHeader[];
    /** Schema of a JSON response. If `content` is missing too, the response is empty. */
    readonly schema?: A;
    readonly content?: Content;
  };
  readonly answers?: Readonly<Record<number, object>>;
  /** Error codes in addition to those implied by the other options. */
  readonly refuses?: readonly ErrorCode[];
}

type AnyRoute = RouteOptions<TSchema, TSchema, TSchema, TSchema>;

const ofJson = ['invalid_json', 'missing_field', 'invalid_field'] as const;
const ofBody = ['upload_too_slow', 'payload_too_large', 'unsupported_media_type'] as const;
const ofKey = [
  'invalid_api_key',
  'insufficient_scope',
  'rate_limited',
  'headers_too_large',
  'internal_error',
  'unavailable',
] as const;

/** The first code for each status is the example in the document. */
function refusalsOf({ params, query, headers = {}, json, content, access, refuses = [] }: AnyRoute) {
  const takesBody = json !== undefined || content !== undefined;
  const { properties = {} } = (query ?? {}) as { readonly properties?: object };
  const hasCursor = Object.keys(properties).some((name) => name.endsWith('cursor'));
  const codes: [isPossible: boolean, ...codes: ErrorCode[]][] = [
    [params !== undefined || (query !== undefined && !takesBody), 'invalid_field'],
    [takesBody, ...ofJson],
    [takesBody, ...ofBody],
    [true, ...refuses],
    [query !== undefined, 'invalid_field'],
    [hasCursor, 'invalid_cursor'],
    ['Idempotency-Key' in headers, 'idempotency_conflict'],
    [params !== undefined, 'not_found', 'route_not_found'],
    [access !== 'open', ...ofKey],
  ];
  return new Set(codes.flatMap(([isPossible, ...some]) => (isPossible ? some : [])));
}

const forAdmins =
  ' Requires a session of the console that began with ADMIN_KEY or with a link from the command line.';

function schemaOf(route: AnyRoute, tag: string): FastifySchema {
  const { operationId, summary, security, params, query, headers, json, answer } = route;
  const { status = 200, schema, content = schema && { 'application/json': { schema } } } = answer;
  const body =
    json === undefined ? route.content : { 'application/json': withExamples(json.schema, json.examples) };
  return {
    operationId,
    summary,
    description: route.description + (route.access === 'admin' ? forAdmins : ''),
    tags: [tag],
    ...(security !== undefined && { security }),
    ...(params !== undefined && { params }),
    ...(query !== undefined && { querystring: query }),
    ...(headers !== undefined && { headers: Type.Object(headers) }),
    ...(body !== undefined && { body: { content: body } }),
    response: {
      [status]: {
        ...(content === undefined ? { type: 'null' } : { content }),
        description: answer.description,
        ...(answer.headers !== undefined && { headers: named(...answer.headers) }),
      },
      ...errorAnswers(...refusalsOf(route)),
      ...route.answers,
    },
  };
}

function configOf({ access, config }: AnyRoute): FastifyContextConfig {
  if (access === 'open') return { ...config };
  return { ...config, scope: access === 'admin' ? 'any' : access };
}

export function route<P extends TSchema, Q extends TSchema, B extends TSchema, A extends TSchema, O>(
  options: RouteOptions<P, Q, B, A> & {
    readonly prepare?: (system: System) => O;
    readonly handle: (
      call: Call<Static<P>, Static<Q>, Static<B>, O>,
    ) => Promise<ReadOnly<Static<A>> | FastifyReply | undefined>;
  },
): Route {
  const { access, json, answer, prepare, handle } = options;
  const { status = 200 } = answer;
  const findProblems = json === undefined ? null : compileSchema(json.schema);
  const readBody = (request: FastifyRequest): Static<B> => {
    if (findProblems === null) return undefined as Static<B>;
    const body = readJsonObject(bodyBytes(request));
    throwProblems(findProblems(body));
    return body as Static<B>;
  };
  return directRoute(options, (system, server) => {
    const prepared = prepare?.(system) as O;
    return async (request, reply) => {
      if (access === 'admin') requireAdmin(request);
      const call = {
        system: actingAs(system, callerActor(request)),
        server,
        prepared,
        request,
        reply,
        params: request.params as Static<P>,
        query: request.query as Static<Q>,
        body: readBody(request),
        environment: access === 'open' ? 0 : environmentId(request),
        base: () => baseUrl(request, system.config.publicUrl),
      };
      if (status !== 200) reply.code(status);
      const result = await handle(call);
      return result === reply ? reply : reply.send(result);
    };
  });
}

/** The handler sends the response itself. This saves the microseconds of a promise. */
export function directRoute<P extends TSchema, Q extends TSchema, B extends TSchema, A extends TSchema>(
  options: RouteOptions<P, Q, B, A>,
  handle: (system: System, server: Server) => (request: FastifyRequest, reply: FastifyReply) => unknown,
): Route {
  const { at, json, bodyKind = json === undefined ? 'raw' : 'json' } = options;
  const [method = '', url = ''] = at.split(' ');
  return {
    bodyKind,
    add: (scope, system, server, tag) => {
      scope.route({
        method: method as HTTPMethods,
        url,
        config: configOf(options),
        schema: schemaOf(options, tag),
        handler: handle(system, server),
      });
    },
  };
}

/**
 * Routes of a capability, by chapter of the API document. Within each chapter, the core's routes
 * come first.
 */
export type TaggedRoutes = Readonly<Partial<Record<Tag, readonly Route[]>>>;
