import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { packageRoot } from '../../../src/base/package-root.ts';
import { readDefinitionsFile } from '../../../src/lookups/definitions.ts';

type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

const docs = (...names: string[]): string => readFileSync(join(packageRoot, 'docs', ...names), 'utf8');
const sample = parse(docs('samples', 'definitions.yaml')) as Json;
const schema = JSON.parse(docs('schemas', 'definitions.schema.json')) as object;

const ajv = new Ajv2020({ strict: false });
ajv.addSchema(JSON.parse(docs('schemas', 'segment.schema.json')));
const validate = ajv.compile(schema);

const readerTakes = (value: Json): boolean =>
  readDefinitionsFile(Buffer.from(JSON.stringify(value)), []).problemCount === 0;

const completeFile: Json = {
  segments: [
    {
      key: 'a',
      title: 'A',
      usage: 'u',
      category: 'c',
      is_hidden: true,
      is_protected: false,
      status: 's',
      made_by: 'api',
      definition: {
        all: [
          { property: 'plan', in: ['pro', 1] },
          { event: 'e', at_least: 2 },
        ],
      },
    },
  ],
  surveys: [{ key: 'a', title: 'A', platform: 'web', modules: [{ key: 'm', type: 't', question: 'Q' }] }],
  embeds: [{ key: 'a', title: 'A', type: 'card' }],
  resource_center_modules: [{ key: 'a', display_name: 'A', data_type: 't' }],
  checklists: [{ key: 'a', display_name: 'A', data_type: 't' }],
  features: [{ key: 'a b', display_name: 'A', data_type: 't' }],
};

const wrongValues: readonly Json[] = [
  null,
  true,
  7,
  '',
  'two\nlines',
  'x'.repeat(3_000),
  [],
  {},
  ['x'],
  { x: 1 },
];

/** Yields copies of the value. Each copy has a single change. */
function* mutations(value: Json, path = ''): Generator<[path: string, mutation: Json]> {
  for (const misplaced of wrongValues)
    yield [`${path} = ${JSON.stringify(misplaced).slice(0, 20)}`, misplaced];
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      for (const [at, mutation] of mutations(item, `${path}[${index}]`))
        yield [at, value.with(index, mutation)];
    }
    return;
  }
  yield [`${path}.extra`, { ...value, extra: 'x' }];
  for (const [name, member] of Object.entries(value)) {
    const { [name]: _, ...withoutMember } = value;
    yield [`${path} without ${name}`, withoutMember];
    for (const [at, mutation] of mutations(member, `${path}.${name}`))
      yield [at, { ...value, [name]: mutation }];
  }
}

test('the published schema accepts the sample', () => {
  expect(validate(sample)).toBe(true);
});

test('the schema and the reader agree on every single change of a complete file', () => {
  const verdicts = { accepted: 0, refused: 0 };
  for (const [at, mutation] of mutations(completeFile)) {
    const isAccepted = readerTakes(mutation);
    expect([at, validate(mutation)]).toEqual([at, isAccepted]);
    verdicts[isAccepted ? 'accepted' : 'refused']++;
  }
  expect(verdicts.accepted).toBeGreaterThan(30);
  expect(verdicts.refused).toBeGreaterThan(400);
});
