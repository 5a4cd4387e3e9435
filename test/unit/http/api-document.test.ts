import { describe, expect, test } from 'vitest';
import type { MediaType, Operation } from '../../../src/http/api-document.ts';
import { createIdleApp } from '../../../tools/describe-api.ts';
import { describedApi } from '../../support/oracles/api-document.ts';

const api = await describedApi();
const { document } = api;

interface Described {
  readonly name: string;
  readonly place: readonly string[];
  readonly operation: Operation;
}

const operations: readonly Described[] = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    name: `${method.toUpperCase()} ${path}`,
    place: ['paths', path, method],
    operation,
  })),
);

function* walk(value: unknown, place: readonly string[] = []): Generator<[readonly string[], object]> {
  if (typeof value !== 'object' || value === null) return;
  yield [place, value];
  for (const [key, inner] of Object.entries(value)) yield* walk(inner, [...place, key]);
}

function at(reference: string): unknown {
  const tokens = reference.replace(/^#\//, '').split('/');
  return tokens.reduce<unknown>(
    (value, token) => (value as Record<string, unknown> | undefined)?.[token.replaceAll('~1', '/')],
    document,
  );
}

function readRoutes(tree: string): string[] {
  const stem: string[] = [];
  return tree.split('\n').flatMap((line) => {
    const [, indent = '', part = '', methods = ''] =
      /^(.*?)[├└]── (\S+)(?: \(([A-Z, ]+)\))?/.exec(line) ?? [];
    stem.splice(indent.length / 4, Number.POSITIVE_INFINITY, part);
    const path = stem.join('').replace(/:(\w+)(?:\(\^.*\$\))?/g, '{$1}');
    return methods === '' ? [] : methods.split(', ').map((method) => `${method} ${path}`);
  });
}

test('the document has every route, and nothing else', async () => {
  const app = createIdleApp();
  await app.ready();
  const routes = readRoutes(app.printRoutes({ commonPrefix: false }));
  await app.close();
  expect(routes).toContain('HEAD /v1/background_jobs/{job_id}');
  // HTML pages and their files are not part of the documented API.
  const documentedRoutes = routes.filter((route) => !/^HEAD | \/(?:docs|console)\b/.test(route));
  expect(operations.map(({ name }) => name).sort()).toEqual(documentedRoutes.sort());
});

test('the ids of operations are unique', () => {
  const ids = operations.map(({ operation }) => operation.operationId);
  expect(new Set(ids).size).toBe(ids.length);
});

test('every reference has a target', () => {
  const references = [...walk(document)].flatMap(([, value]) =>
    '$ref' in value && typeof value.$ref === 'string' ? [value.$ref] : [],
  );
  expect(references.length).toBeGreaterThan(0);
  for (const reference of references)
    expect([reference, typeof at(reference)]).toEqual([reference, 'object']);
});

test('every component is used, and accepts its own examples', () => {
  const text = JSON.stringify(document);
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    expect([name, text.includes(`"#/components/schemas/${name}"`)]).toEqual([name, true]);
    const { examples = [] } = schema as { examples?: unknown[] };
    for (const example of examples) {
      expect(api.problems(['components', 'schemas', name], example)).toEqual([]);
    }
  }
});

test.each(operations)('$name has an id, a summary and one known tag', ({ operation }) => {
  expect(operation.operationId).toMatch(/^[a-z][A-Za-z]+$/);
  expect(operation.summary).toMatch(/^[A-Z].*[^.]$/);
  expect(operation.tags).toHaveLength(1);
  expect(document.tags.map(({ name }) => name)).toContain(operation.tags?.[0]);
});

test.each(operations)('$name documents its answers and path parameters', ({ place, operation }) => {
  const { responses, security } = operation;
  expect(Object.keys(responses).some((status) => status.startsWith('2'))).toBe(true);
  const schemes = (security ?? []).flatMap((requirement) => Object.keys(requirement));
  // A sign-in request sends the key in its body, so it can also be refused with 401 or 403.
  const isSignIn = operation.operationId === 'signIn';
  expect('401' in responses).toBe(schemes.length > 0 || isSignIn);
  expect('403' in responses).toBe(schemes.includes('apiKey') || isSignIn);
  for (const status of Object.keys(responses)) {
    const { description, headers } = api.answer(place, operation, status)?.answer ?? {};
    expect(description).toMatch(/\S/);
    expect(headers).toHaveProperty('x-request-id');
  }
  const inPath = (place[1] ?? '').matchAll(/\{(\w+)\}/g);
  const pathParameters = (operation.parameters ?? []).filter((parameter) => parameter.in === 'path');
  expect(pathParameters.map(({ name }) => name)).toEqual([...inPath].map(([, name]) => name));
});

/** The parts of a schema that readers and client generators use. */
interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
}

/**
 * Finds information that a schema should have but lacks. In `allOf`, checks only the first schema,
 * because the other schemas only narrow the first.
 */
function* findGaps(schema: Schema, place: string, isField: boolean): Generator<string> {
  if (schema.$ref !== undefined) return;
  if (isField && !schema.description) yield `${place} has no description`;
  if ([schema.type].flat().includes('object') && schema.additionalProperties === undefined) {
    yield `${place} does not say whether it has other keys (additionalProperties)`;
  }
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    yield* findGaps(field, `${place}.${name}`, true);
  }
  if (schema.items !== undefined) yield* findGaps(schema.items, `${place}[]`, false);
  if (typeof schema.additionalProperties === 'object') {
    yield* findGaps(schema.additionalProperties, `${place}.*`, false);
  }
  for (const part of [...(schema.anyOf ?? []), ...(schema.allOf ?? []).slice(0, 1)]) {
    yield* findGaps(part, place, false);
  }
}

const schemas = Object.entries(document.components.schemas);

test.each(schemas)('every field of %s has a description', (name, schema) => {
  expect([...findGaps(schema as Schema, name, true)]).toEqual([]);
});

test('every header of answers has a description', () => {
  for (const [name, header] of Object.entries(document.components.headers)) {
    expect([name, header]).toEqual([name, expect.objectContaining({ description: expect.any(String) })]);
  }
});

interface Body {
  readonly name: string;
  readonly place: readonly string[];
  readonly media: MediaType;
}

function bodiesOf({ place, operation }: Described): Body[] {
  const ofRequest = Object.entries(operation.requestBody?.content ?? {}).map(([type, media]) => ({
    name: type,
    place: [...place, 'requestBody', 'content', type],
    media,
  }));
  const ofAnswers = Object.keys(operation.responses).flatMap((status) => {
    const response = api.answer(place, operation, status);
    return Object.entries(response?.answer.content ?? {}).map(([type, media]) => ({
      name: `${status} ${type}`,
      place: [...(response?.place ?? []), 'content', type],
      media,
    }));
  });
  return [...ofRequest, ...ofAnswers];
}

describe.each(operations)('$name', (described) => {
  const { operation } = described;
  const bodies = bodiesOf(described);

  // proves: openapi
  test('an operation and each of its parameters have a description', () => {
    expect(operation.description).toMatch(/\S/);
    const undescribed = (operation.parameters ?? []).filter(({ description }) => !description);
    expect(undescribed.map(({ name }) => name)).toEqual([]);
  });

  // proves: openapi
  test('every field of the bodies of an operation has a description', () => {
    const isRequest = (name: string) => !/^\d{3} /.test(name);
    const gaps = bodies.flatMap(({ name, media }) => [
      ...findGaps(media.schema as Schema, name, isRequest(name)),
    ]);
    expect(gaps).toEqual([]);
  });

  // proves: openapi
  test('every text body of an operation has examples that its schema accepts', () => {
    for (const { name, place, media } of bodies) {
      const { examples = {}, schema } = media;
      const isBinary = (schema as Schema).format === 'binary';
      expect([name, Object.keys(examples).length > 0]).toEqual([name, !isBinary]);
      const values = Object.values(examples).map((example) => example.value);
      expect(values.flatMap((value) => api.problems([...place, 'schema'], value))).toEqual([]);
    }
  });
});

test('an import takes a form, and not JSON, so that generated clients can send files', () => {
  const types = Object.keys(document.paths['/v1/imports']?.['post']?.requestBody?.content ?? {});
  expect([types[0], types.includes('application/json')]).toEqual(['multipart/form-data', false]);
});
