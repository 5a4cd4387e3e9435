import { expect, test } from 'vitest';
import type { Operation } from '../../../src/http/api-document.ts';
import { createIdleApp } from '../../../tools/describe-api.ts';
import { describedApi } from '../../support/api-document.ts';

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

/** Everything in the document, with where it stands. */
function* walk(value: unknown, place: readonly string[] = []): Generator<[readonly string[], object]> {
  if (typeof value !== 'object' || value === null) return;
  yield [place, value];
  for (const [key, each] of Object.entries(value)) yield* walk(each, [...place, key]);
}

function at(reference: string): unknown {
  const tokens = reference.replace(/^#\//, '').split('/');
  return tokens.reduce<unknown>(
    (value, token) => (value as Record<string, unknown> | undefined)?.[token.replaceAll('~1', '/')],
    document,
  );
}

/** `METHOD /path/{parameter}` of every route, read from the tree that Fastify prints. */
function readRoutes(tree: string): string[] {
  const stem: string[] = [];
  return tree.split('\n').flatMap((line) => {
    const [, indent = '', part = '', methods = ''] =
      /^(.*?)[├└]── (\S+)(?: \(([A-Z, ]+)\))?/.exec(line) ?? [];
    stem.splice(indent.length / 4, Number.POSITIVE_INFINITY, part);
    const path = stem.join('').replace(/:(\w+)/g, '{$1}');
    return methods === '' ? [] : methods.split(', ').map((method) => `${method} ${path}`);
  });
}

test('every route is in the document, and nothing else', async () => {
  const app = createIdleApp();
  await app.ready();
  const routes = readRoutes(app.printRoutes({ commonPrefix: false }));
  await app.close();
  expect(routes).toContain('HEAD /v1/background_jobs/{job_id}');
  // Pages for people, and their files, are no part of the interface.
  const shown = routes.filter((route) => !/^HEAD | \/(?:docs|console)\b/.test(route));
  expect(operations.map(({ name }) => name).sort()).toEqual(shown.sort());
});

test('operations have ids of their own', () => {
  const ids = operations.map(({ operation }) => operation.operationId);
  expect(new Set(ids).size).toBe(ids.length);
});

test('every reference leads somewhere', () => {
  const references = [...walk(document)].flatMap(([, value]) =>
    '$ref' in value && typeof value.$ref === 'string' ? [value.$ref] : [],
  );
  expect(references.length).toBeGreaterThan(0);
  for (const reference of references)
    expect([reference, typeof at(reference)]).toEqual([reference, 'object']);
});

test('every component is used, and is its own example', () => {
  const text = JSON.stringify(document);
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    expect([name, text.includes(`"#/components/schemas/${name}"`)]).toEqual([name, true]);
    const { examples = [] } = schema as { examples?: unknown[] };
    for (const example of examples) {
      expect(api.problems(['components', 'schemas', name], example)).toEqual([]);
    }
  }
});

test.each(operations)('$name says what it is', ({ operation }) => {
  expect(operation.operationId).toMatch(/^[a-z][A-Za-z]+$/);
  expect(operation.summary).toMatch(/^[A-Z].*[^.]$/);
  expect(operation.tags).toHaveLength(1);
  expect(document.tags.map(({ name }) => name)).toContain(operation.tags?.[0]);
});

test.each(operations)('$name documents its answers', ({ place, operation }) => {
  const { responses, security } = operation;
  expect(Object.keys(responses).some((status) => status.startsWith('2'))).toBe(true);
  const schemes = (security ?? []).flatMap((requirement) => Object.keys(requirement));
  // Whoever signs in sends the key in the body.
  const signsIn = operation.operationId === 'signIn';
  expect('401' in responses).toBe(schemes.length > 0 || signsIn);
  expect('403' in responses).toBe(schemes.includes('apiKey') || signsIn);
  for (const status of Object.keys(responses)) {
    const { description, headers } = api.answer(place, operation, status)?.answer ?? {};
    expect(description).toMatch(/\S/);
    expect(headers).toHaveProperty('x-request-id');
  }
  const inPath = (place[1] ?? '').matchAll(/\{(\w+)\}/g);
  const described = (operation.parameters ?? []).filter((parameter) => parameter.in === 'path');
  expect(described.map(({ name }) => name)).toEqual([...inPath].map(([, name]) => name));
});
