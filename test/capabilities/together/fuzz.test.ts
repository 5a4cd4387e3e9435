import { Agent, type IncomingMessage, request } from 'node:http';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ApiDocument } from '../../../src/http/api-document.ts';
import { describedApi } from '../../support/oracles/api-document.ts';
import { runs } from '../../support/runs.ts';
import { form, serve, type TestServer } from '../../support/servers/http.ts';
import { openTestSystem, type TestSystem } from '../../support/servers/system.ts';
import { waitFor } from '../../support/wait-for.ts';

const requests = runs(8_000);
const atATime = 12;
/** Milliseconds for sending requests. A slow machine sends fewer requests. */
const budgetMs = 20_000;

let t: TestSystem;
let server: TestServer;
let agent: Agent;
let jobIds: readonly string[];
beforeAll(async () => {
  t = await openTestSystem({
    settings: { ADMIN_KEY: 'admin-key-of-the-tests-0123', UPLOAD_STALL_MS: '2000' },
  });
  server = await serve(t);
  agent = new Agent({ keepAlive: true, maxSockets: atATime });
  jobIds = await makeJobs();
});
afterAll(async () => {
  agent?.destroy();
  await server?.stop();
  await t?.close();
});

async function makeJobs(): Promise<string[]> {
  const worker = t.startWorker();
  const json = { method: 'POST', headers: { 'content-type': 'application/json' } };
  const answers = [
    await server.json<{ job_id: string }>('/v1/imports', { method: 'POST', body: form('user_id\nu1\n,\n') }),
    await server.json<{ job_id: string }>('/v1/users', {
      ...json,
      method: 'DELETE',
      body: '{"users":["u1"]}',
    }),
    await server.json<{ job_id: string }>('/api/v1/analytics/exports', { ...json, body: '{}' }),
  ];
  const ids = answers.map(({ body }) => body.job_id);
  await waitFor('the jobs to end', async () => {
    const { body } = await server.json<{ status: string }[]>('/v1/background_jobs?status=completed');
    return body.length === ids.length;
  });
  await worker.stop();
  return ids;
}

interface FuzzRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

interface FuzzAnswer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

// proves: no-5xx
test('no request is answered with 5xx, or refused without an error record', async () => {
  const { document } = await describedApi();
  const faults: string[] = [];
  const statuses = new Map<number, number>();
  const samples = fc.sample(anyRequest(routesOf(document), t.key, jobIds), { numRuns: requests });
  const until = performance.now() + budgetMs;
  // A run in which most requests fail early would prove too little, so the run continues until each
  // of the statuses below has occurred several times.
  const isVaried = () => [200, 202, 400, 401, 404, 405].every((status) => (statuses.get(status) ?? 0) > 3);
  const work = async (): Promise<void> => {
    while (performance.now() < until || !isVaried()) {
      const sample = samples.pop();
      if (sample === undefined) return;
      const answer = await sendPatiently(sample);
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
      const fault = problem(sample, answer);
      if (fault !== null)
        faults.push(`${fault}: ${describe(sample)} → ${answer.status} ${answer.body.slice(0, 300)}`);
    }
  };
  await Promise.all(Array.from({ length: atATime }, work));
  expect(faults.sort().slice(0, 10)).toEqual([]);
  expect(isVaried(), JSON.stringify([...statuses])).toBe(true);
});

function problem({ method, path }: FuzzRequest, { status, headers, body }: FuzzAnswer): string | null {
  if (status >= 500) return '5xx';
  if (headers['x-content-type-options'] !== 'nosniff') return 'no nosniff';
  if (status < 400 || method === 'HEAD') return null;
  if (headers['x-request-id'] === undefined) return 'no x-request-id';
  return isErrorRecord(body) ? null : `no error record of ${path}`;
}

function isErrorRecord(body: string): boolean {
  try {
    const { errors } = JSON.parse(body) as { errors: Record<string, unknown>[] };
    const fields = ['details', 'error', 'error_code', 'message'];
    return (
      errors.length > 0 &&
      errors.every(
        (error) =>
          JSON.stringify(Object.keys(error).sort()) === JSON.stringify(fields) &&
          Object.values(error).every((value) => typeof value === 'string' && value.isWellFormed()),
      )
    );
  } catch {
    return false;
  }
}

/**
 * Sends a request, and repeats it after status 503, which may be due to a busy machine. If all
 * attempts get 503, the request itself is the cause.
 */
async function sendPatiently(sample: FuzzRequest, tries = 5): Promise<FuzzAnswer> {
  const answer = await send(sample);
  return answer.status === 503 && tries > 1 ? sendPatiently(sample, tries - 1) : answer;
}

/**
 * Sends a request without fetch, because fetch normalises paths and refuses bodies with some
 * methods.
 */
function send({ method, path, headers, body }: FuzzRequest): Promise<FuzzAnswer> {
  const { hostname, port } = new URL(server.address);
  return new Promise((resolve, reject) => {
    const length = { 'content-length': String(body.length) };
    const clientRequest = request({
      agent,
      hostname,
      port,
      method,
      path,
      headers: { ...headers, ...length },
    });
    clientRequest.on('error', (error) =>
      reject(new Error(describe({ method, path, headers, body }), { cause: error })),
    );
    clientRequest.on('response', (response) => {
      const pieces: Buffer[] = [];
      response.on('data', (piece: Buffer) => pieces.push(piece));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(pieces).toString('utf8'),
        }),
      );
    });
    clientRequest.end(body);
  });
}

function describe({ method, path, headers, body }: FuzzRequest): string {
  return `${method} ${path.slice(0, 300)} ${JSON.stringify(headers)} ${JSON.stringify(body.toString('latin1').slice(0, 400))}`;
}

interface Route {
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly string[];
  readonly members: readonly string[];
}

/** Returns every route in the API document, and the routes of HTML pages. */
function routesOf(document: ApiDocument): Route[] {
  const described = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { parameters = [], requestBody }]) => ({
      method: method.toUpperCase(),
      path,
      parameters: parameters
        .filter((parameter) => parameter.in === 'query')
        .map((parameter) => parameter.name),
      members: [...new Set(membersOf(document, requestBody))],
    })),
  );
  const pages = ['/', '/docs', '/docs/', '/docs/json', '/docs/yaml', '/docs/static/{file}'];
  return [...described, ...pages.map((path) => ({ method: 'GET', path, parameters: [], members: [] }))];
}

function membersOf(document: ApiDocument, schema: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const { $ref, properties, examples: _, ...keywords } = schema as Record<string, unknown>;
  const name = typeof $ref === 'string' ? $ref.split('/').at(-1) : undefined;
  const referenced = name === undefined ? [] : membersOf(document, document.components.schemas[name]);
  const subschemas = [...Object.values(keywords), ...Object.values(properties ?? {})];
  return [
    ...referenced,
    ...Object.keys(properties ?? {}),
    ...subschemas.flatMap((subschema) => membersOf(document, subschema)),
  ];
}

const oddTexts = [
  ...'0 -1 1e9 null true [] {} * % .. ../../package.json __proto__ constructor $1 \\ " user:*'.split(' '),
  ...'property:\0 segment:99999999999 2026-02-30 2026-11-20T12:00:00Z bmFu 275760-09-13'.split(' '),
  ...'01a1f879-8845-7223-9ca4-ceafb3823817 \0 a\0b \u0001 \r\n \ud800 a\udc00 \ufeff 👍'.split(' '),
  ...['', ' ', "'; drop table users; --", '9'.repeat(30), 'é'.repeat(200), 'x'.repeat(3_000)],
  // Values of options that describe how to read a file.
  ...'none 1 2 tab ; utf-8 windows-1252 utf-16 pad NULL # 1=user_id users'.split(' '),
];
const text = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...oddTexts) },
  { weight: 1, arbitrary: fc.constantFrom('\0', 'a\0b') },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
);

const anything = fc.oneof(
  text,
  fc.constantFrom<unknown>(null, true, 0, -0.5, 1e300, 2 ** 53, [], {}, [[]], [null]),
  fc.array(text, { maxLength: 4 }),
  fc.dictionary(text, fc.oneof(text, fc.integer()), { maxKeys: 4 }),
  fc.jsonValue({ maxDepth: 4 }),
);

/** Usually returns a known name, and sometimes any text. */
function nameAmong(knownNames: readonly string[]): fc.Arbitrary<string> {
  return knownNames.length === 0
    ? text
    : fc.oneof({ weight: 8, arbitrary: fc.constantFrom(...knownNames) }, { weight: 1, arbitrary: text });
}

/** Valid bodies. A route receives the bodies whose members it knows. */
const plausible: readonly object[] = [
  { user_id: 'u1', metadata: { plan: 'pro' }, company: { company_id: 'acme' } },
  { user_id: 'u1', event_name: 'signed_up', metadata: {} },
  { company_id: 'acme', metadata: { size: 3 } },
  { users: [{ user_id: 'u1' }, { user_id: 'a\0b' }] },
  { companies: [{ company_id: 'acme', metadata: { a: 1 } }] },
  { users: ['u1', 'a\0b'] },
  { companies: ['acme'] },
  { from: '2026-11-01', event_type: ['users'] },
];

const jsonBody = (members: readonly string[]): fc.Arbitrary<Buffer> => {
  const acceptedBodies = plausible.filter((body) =>
    Object.keys(body).every((name) => members.includes(name)),
  );
  const validBody = fc.constantFrom(...acceptedBodies, {});
  const value = fc.oneof(text, fc.array(text, { minLength: 1, maxLength: 2 }), anything);
  const oddMembers = fc.dictionary(nameAmong(members), value, { minKeys: 1, maxKeys: 2 });
  return fc.oneof(
    { weight: 4, arbitrary: validBody.map(toJson) },
    {
      weight: 10,
      arbitrary: fc.tuple(validBody, oddMembers).map(([base, members]) => toJson({ ...base, ...members })),
    },
    { weight: 2, arbitrary: anything.map(toJson) },
    // An escaped half of a surrogate pair.
    { weight: 1, arbitrary: text.map((letters) => Buffer.from(`{"user_id":"\\ud800${letters}"}`)) },
    { weight: 1, arbitrary: fc.constantFrom('[', '{"a":').map(deepRecord) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)) },
  );
};

function deepRecord(level: string): Buffer {
  const close = level === '[' ? ']' : '}';
  return Buffer.from(`{"user_id":"u1","deep":${level.repeat(8_000)}1${close.repeat(8_000)}}`);
}

const csvBody = (members: readonly string[]): fc.Arbitrary<Buffer> =>
  fc
    .tuple(
      fc.array(nameAmong(members), { minLength: 1, maxLength: 4 }),
      fc.array(fc.array(text, { maxLength: 4 }), { maxLength: 4 }),
    )
    .map(([header, rows]) => Buffer.from([header, ...rows].map((row) => row.join(',')).join('\n')));

const boundary = 'sluice-fuzz';
const formBody = (file: fc.Arbitrary<Buffer>, names: readonly string[]): fc.Arbitrary<Buffer> =>
  fc
    .tuple(
      fc.array(fc.tuple(nameAmong(names), text), { maxLength: 3 }),
      fc.tuple(nameAmong(['file']), text, file),
      fc.constantFrom(`\r\n--${boundary}--\r\n`, `\r\n--${boundary}--`, '', '\r\n--'),
    )
    .map(([fields, [part, filename, bytes], end]) =>
      Buffer.concat([
        ...fields.map(([field, value]) => Buffer.from(`${partHead(`name="${field}"`)}${value}\r\n`)),
        Buffer.from(partHead(`name="${part}"; filename="${filename}"`)),
        bytes,
        Buffer.from(end),
      ]),
    );

function partHead(parameters: string): string {
  return `--${boundary}\r\ncontent-disposition: form-data; ${parameters}\r\n\r\n`;
}

function bodyAndType({ members, parameters }: Route): fc.Arbitrary<readonly [Buffer, string]> {
  const json = jsonBody(members);
  const file = fc.oneof(json, csvBody(members));
  const form = formBody(file, parameters);
  return fc.oneof(
    { weight: 6, arbitrary: json.map((body) => [body, 'application/json'] as const) },
    { weight: 2, arbitrary: file.map((body) => [body, 'text/csv'] as const) },
    { weight: 1, arbitrary: file.map((body) => [body, 'application/x-ndjson'] as const) },
    {
      weight: 2,
      arbitrary: form.map((body) => [body, `multipart/form-data; boundary=${boundary}`] as const),
    },
    { weight: 1, arbitrary: fc.tuple(file, text.map(toHeader)) },
    { weight: 1, arbitrary: fc.constant([Buffer.alloc(0), 'application/json'] as const) },
  );
}

const otherMethods = ['HEAD', 'PUT', 'PATCH', 'OPTIONS', 'DELETE', 'POST', 'GET', 'TRACE'];
const oddTails = ['/', '//', '/..', '/../../package.json', '/%2e%2e/', '/%00', '/%zz', ';a'];

/** Usually returns values of the first generator, and sometimes values of another one. */
function mostly<T>(usual: fc.Arbitrary<T>, ...rareCases: readonly fc.Arbitrary<T>[]): fc.Arbitrary<T> {
  return fc.oneof(
    { weight: 15, arbitrary: usual },
    ...rareCases.map((arbitrary) => ({ weight: 1, arbitrary })),
  );
}

function anyRequest(
  routes: readonly Route[],
  key: string,
  jobIds: readonly string[],
): fc.Arbitrary<FuzzRequest> {
  // Routes with a body are used more often, because they have more to test.
  const weighed = routes.flatMap((route) => Array<Route>(route.members.length > 0 ? 4 : 1).fill(route));
  return fc.constantFrom(...weighed).chain((route) =>
    fc
      .record({
        method: mostly(fc.constant(route.method), fc.constantFrom(...otherMethods)),
        parts: fc.array(fc.oneof(fc.constantFrom(...jobIds), text), { minLength: 2, maxLength: 2 }),
        tail: mostly(
          fc.constant(''),
          fc.constantFrom(...oddTails),
          text.map((word) => `/${encode(word)}`),
        ),
        query: fc.array(fc.tuple(nameAmong(route.parameters), text), { maxLength: 3 }).map(search),
        body: bodyAndType(route),
        gzip: mostly(fc.constant('no'), fc.constantFrom('yes', 'lie')),
        authorization: mostly(
          fc.constant(`Token ${key}`),
          fc.constantFrom('', 'Token', `Token ${'slk_'.padEnd(57, '0')}`, 'Basic YQ=='),
          text.map(toHeader),
        ),
        headers: mostly(
          fc.constant({}),
          ...Array(5).fill(
            fc.dictionary(fc.constantFrom(...headerNames), text.map(toHeader), { maxKeys: 2 }),
          ),
        ),
      })
      .map(({ method, parts, tail, query, body: [body, type], gzip, authorization, headers }) => {
        const remainingParts = [...parts];
        const path = route.path.replaceAll(/\{\w+\}/g, () => encode(remainingParts.shift() ?? '') || 'x');
        return {
          method,
          path: `${path}${tail}${query}`,
          headers: {
            ...headers,
            'content-type': type,
            ...(authorization === '' ? {} : { authorization }),
            ...(gzip === 'no' ? {} : { 'content-encoding': 'gzip' }),
          },
          body: gzip === 'yes' ? gzipSync(body) : body,
        };
      }),
  );
}

function search(pairs: readonly (readonly [string, string])[]): string {
  return pairs.map(([name, value], at) => `${at === 0 ? '?' : '&'}${encode(name)}=${encode(value)}`).join('');
}

const headerNames = [
  ...'idempotency-key accept content-disposition x-request-id range if-none-match if-range'.split(' '),
  ...'cookie x-api-version x-forwarded-for expect-ct origin'.split(' '),
];

function toJson(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value) ?? 'null');
}

/**
 * Encodes a string for a URL. A string with half a surrogate pair becomes invalid UTF-8, as some
 * careless clients send.
 */
function encode(value: string): string {
  const bytes = value.isWellFormed() ? Buffer.from(value) : Buffer.from('\xff\xfe', 'latin1');
  return [...bytes]
    .map((byte) => (/[\w.*-]/.test(String.fromCharCode(byte)) ? String.fromCharCode(byte) : percent(byte)))
    .join('');
}

function percent(byte: number): string {
  return `%${byte.toString(16).padStart(2, '0')}`;
}

function toHeader(value: string): string {
  return value.replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, '?');
}
