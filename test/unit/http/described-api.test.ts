import { describe, expect, test } from 'vitest';
import type { MediaType, Operation } from '../../../src/http/api-document.ts';
import { describedApi } from '../../support/api-document.ts';

const api = await describedApi();
const { document } = api;

/** A schema as far as a reader of the document, or a generator of clients, depends on it. */
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

/** What a schema leaves open. The parts of `allOf` only narrow each other: the first says what it is. */
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

interface Found {
  readonly name: string;
  readonly place: readonly string[];
  readonly operation: Operation;
}

const operations: readonly Found[] = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    name: `${method.toUpperCase()} ${path}`,
    place: ['paths', path, method],
    operation,
  })),
);

interface Body {
  readonly name: string;
  readonly place: readonly string[];
  readonly media: MediaType;
}

/** The bodies of an operation, in requests and in answers. */
function bodiesOf({ place, operation }: Found): Body[] {
  const ofRequest = Object.entries(operation.requestBody?.content ?? {}).map(([type, media]) => ({
    name: type,
    place: [...place, 'requestBody', 'content', type],
    media,
  }));
  const ofAnswers = Object.keys(operation.responses).flatMap((status) => {
    const found = api.answer(place, operation, status);
    return Object.entries(found?.answer.content ?? {}).map(([type, media]) => ({
      name: `${status} ${type}`,
      place: [...(found?.place ?? []), 'content', type],
      media,
    }));
  });
  return [...ofRequest, ...ofAnswers];
}

describe.each(operations)('$name', (found) => {
  const { operation } = found;
  const bodies = bodiesOf(found);

  // proves: openapi
  test('has a description, and so has each of its parameters', () => {
    expect(operation.description).toMatch(/\S/);
    const undescribed = (operation.parameters ?? []).filter(({ description }) => !description);
    expect(undescribed.map(({ name }) => name)).toEqual([]);
  });

  // proves: openapi
  test('describes every field of its bodies', () => {
    const isRequest = (name: string) => !/^\d{3} /.test(name);
    const gaps = bodies.flatMap(({ name, media }) => [
      ...findGaps(media.schema as Schema, name, isRequest(name)),
    ]);
    expect(gaps).toEqual([]);
  });

  // proves: openapi
  test('has an example of each body that is text, and the schema allows it', () => {
    for (const { name, place, media } of bodies) {
      const { examples = {}, schema } = media;
      const isBinary = (schema as Schema).format === 'binary';
      expect([name, Object.keys(examples).length > 0]).toEqual([name, !isBinary]);
      const values = Object.values(examples).map((example) => example.value);
      expect(values.flatMap((value) => api.problems([...place, 'schema'], value))).toEqual([]);
    }
  });
});

test('an import sends a file: with application/json beside the form generators would make no call that can', () => {
  const types = Object.keys(document.paths['/v1/imports']?.['post']?.requestBody?.content ?? {});
  expect([types[0], types.includes('application/json')]).toEqual(['multipart/form-data', false]);
});
