import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readSegment } from '../../../src/lookups/segments/read-segment.ts';
import { operators, segmentSchema } from '../../../src/lookups/segments/segment.ts';
import { definition } from '../../support/oracles/random-segments.ts';
import { runs } from '../../support/runs.ts';

const schemaUrl = new URL('../../../docs/schemas/segment.schema.json', import.meta.url);
const schema = JSON.parse(readFileSync(schemaUrl, 'utf8'));
const matchesSchema = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false }).compile(
  schema,
);

const problemsOf = (json: unknown) =>
  readSegment(json).problems.map(({ path, message }) => `${path} ${message}`);

test.each<[object, { atLeast: number; atMost: number | null }]>([
  [{}, { atLeast: 1, atMost: null }],
  [{ at_least: 3 }, { atLeast: 3, atMost: null }],
  [{ at_most: 3 }, { atLeast: 0, atMost: 3 }],
  [
    { at_least: 2, at_most: 2 },
    { atLeast: 2, atMost: 2 },
  ],
  [{ never: true }, { atLeast: 0, atMost: 0 }],
])('the counts of an event are read from %j', (json, times) => {
  expect(readSegment({ event: 'e', ...json }).segment).toMatchObject({ kind: 'event', ...times });
});

test('a name may be any text, even __proto__, without prototype pollution', () => {
  const text = '{"all": [{"property": "__proto__", "equals": "x"}, {"event": "constructor"}]}';
  expect(readSegment(JSON.parse(text)).segment).toMatchObject({
    segments: [{ property: '__proto__' }, { event: 'constructor' }],
  });
  const inherited = '{"__proto__": {"property": "p", "equals": 1}}';
  expect(problemsOf(JSON.parse(inherited))).toHaveLength(1);
  expect(problemsOf(Object.create({ property: 'p', equals: 1 }))).toHaveLength(1);
  expect(problemsOf(JSON.parse('{"property": "p", "__proto__": {"exists": true}}'))).toEqual([
    expect.stringMatching(/^definition\.__proto__ is no operator/),
    expect.stringMatching(/^definition has no operator/),
  ]);
  expect(({} as { property?: string }).property).toBeUndefined();
});

test('all problems are found at once, each with its place', () => {
  const json = {
    all: [
      { property: '', equals: null },
      { any: [] },
      { company_property: 'seats', greater_than: 'many' },
      {
        not: {
          event: 'e',
          at_least: 0,
          at_most: 1.5,
          within_days: 0,
          where: [{ property: 'a' }, 7],
          often: 1,
        },
      },
      { property: 'p', in: ['a', [], 'b\0'], equals: true },
      { property: 'first_seen_at', equals: '2026-11-20' },
      { event: 'e', never: false, at_least: 1 },
      { event: 'e', at_least: 3, at_most: 2 },
      { all: [{ property: 'p', exists: true }], 'a "name"': 1 },
      { property: 'p', event: 'e' },
      'x',
    ],
  };
  const segmentProblems = readSegment(json).problems;
  expect(segmentProblems.map(({ path }) => path)).toEqual([
    'definition.all[0].property',
    'definition.all[0].equals',
    'definition.all[1].any',
    'definition.all[2].greater_than',
    'definition.all[3].not.often',
    'definition.all[3].not.at_least',
    'definition.all[3].not.at_most',
    'definition.all[3].not.within_days',
    'definition.all[3].not.where[0]',
    'definition.all[3].not.where[1]',
    'definition.all[4].in[1]',
    'definition.all[4].in[2]',
    'definition.all[4]',
    'definition.all[5]',
    'definition.all[6].never',
    'definition.all[6].never',
    'definition.all[7].at_most',
    'definition.all[8]["a \\"name\\""]',
    'definition.all[9]',
    'definition.all[10]',
  ]);
  expect(segmentProblems[3]).toEqual({
    path: 'definition.all[2].greater_than',
    keys: ['all', 2, 'greater_than'],
    message: 'must be a number or a date such as "2026-11-20" or "2026-11-20T12:34:56Z", not "many"',
  });
  expect(matchesSchema(json)).toBe(false);
});

const condition = { property: 'p', exists: true };
function nested(levels: number): object {
  if (levels === 0) return condition;
  const inner = nested(levels - 1);
  return levels % 2 === 0 ? { not: inner } : { all: [inner] };
}

test.each<[string, unknown, unknown]>([
  ['depth', nested(10), nested(11)],
  ['conditions', { all: Array(100).fill(condition) }, { all: Array(101).fill(condition) }],
  [
    'conditions in where',
    { event: 'e', where: Array(99).fill(condition) },
    { event: 'e', where: Array(100).fill(condition) },
  ],
  ['values', { property: 'p', in: Array(1_000).fill('') }, { property: 'p', in: Array(1_001).fill('') }],
  ['text', { property: 'p', equals: '😀'.repeat(1_024) }, { property: 'p', equals: 'x'.repeat(1_025) }],
  ['name', { property: '😀'.repeat(255), equals: 1 }, { property: 'x'.repeat(256), equals: 1 }],
  ['event', { event: 'x'.repeat(256) }, { event: 'x'.repeat(257) }],
  ['days', { property: 'p', in_last_days: 36_500 }, { property: 'p', in_last_days: 36_501 }],
  ['number', { property: 'p', equals: Number.MAX_VALUE }, { property: 'p', equals: JSON.parse('1e400') }],
  ['half a pair', { property: 'p', equals: '😀' }, { property: 'p', equals: '😀'.slice(1) }],
  ['U+0000', { property: 'p', equals: '\u0001' }, { property: 'p', equals: '\0' }],
])('the bound of %s is exact', (_, within, beyond) => {
  expect(problemsOf(within)).toEqual([]);
  expect(matchesSchema(within)).toBe(true);
  expect(problemsOf(beyond)).toHaveLength(1);
});

test('a huge definition is refused with few problems in little time', () => {
  const wide: unknown[] = Array(100).fill(condition);
  let json: object = { all: wide };
  for (let level = 0; level < 20; level++) json = { any: Array(100).fill(json) };
  const cpuBefore = process.cpuUsage();
  expect(readSegment(json).problems.length).toBeLessThanOrEqual(100);
  const loop: { all: unknown[] } = { all: [] };
  loop.all.push(loop, loop);
  expect(readSegment(loop).problems.length).toBeLessThanOrEqual(100);
  expect(readSegment({ property: 'p', in: Array(1_000_000).fill({}) }).problems).toHaveLength(1);
  expect(process.cpuUsage(cpuBefore).user / 1_000).toBeLessThan(2_000);
});

test('the published schema is the schema of the reader', () => {
  expect(schema).toEqual(JSON.parse(JSON.stringify(segmentSchema())));
});

test('the published schema accepts every valid definition', () => {
  fc.assert(
    fc.property(definition, (json) => {
      expect(readSegment(json).problems).toEqual([]);
      expect(matchesSchema(json)).toBe(true);
    }),
    { numRuns: runs(1_000) },
  );
});

test('the published schema and the reader agree on nearly valid definitions', () => {
  let refusedCount = 0;
  fc.assert(
    fc.property(definition.chain(damage), (json) => {
      const { problems } = readSegment(json);
      if (problems.length > 0) refusedCount++;
      // The schema cannot express three of the rules, whose messages are listed below. Definitions
      // that break one of these rules are skipped.
      fc.pre(
        !problems.some(({ message }) => /nested too deep|conditions|is less than at_least/.test(message)),
      );
      expect({ json, accepted: matchesSchema(json) }).toEqual({ json, accepted: problems.length === 0 });
    }),
    { numRuns: runs(5_000) },
  );
  expect(refusedCount).toBeGreaterThan(runs(1_000));
});

type Place = readonly (string | number)[];

function damage(json: object): fc.Arbitrary<unknown> {
  const otherValue = fc.constantFrom<unknown>(
    ...[null, true, false, 0, 1, -1, 1.5, 1_000_001, [], [1], ['', 'a'], [[]], {}],
    ...['', 'x', '\0', '2026-11-20', '2026-02-30'],
    ...[{ property: 'p', exists: true }, { event: 'e' }, { all: [] }],
  );
  const key = fc.constantFrom(
    ...operators,
    ...'all any not property company_property event at_least at_most never within_days where x __proto__'.split(
      ' ',
    ),
  );
  const change = fc.oneof(
    otherValue.map((value) => ({ kind: 'replace', value }) as const),
    fc.constant({ kind: 'remove' } as const),
    fc.tuple(key, otherValue).map(([name, value]) => ({ kind: 'add', name, value }) as const),
    fc
      .tuple(key, fc.constantFrom('first_seen_at', 'plan'))
      .map(([name]) => ({ kind: 'rename', name }) as const),
  );
  return fc.tuple(fc.constantFrom(...placesIn(json, [])), change).map(([place, { kind, ...details }]) => {
    const { name, value } = { name: 'x', value: undefined, ...details } as { name: string; value: unknown };
    return rebuild(json, place, (old, isMember) => {
      if (kind === 'replace') return value;
      if (kind === 'remove' && isMember) return undefined;
      if (typeof old !== 'object' || old === null || Array.isArray(old)) return value ?? null;
      const entries = Object.entries(old);
      if (kind === 'rename') entries.splice(0, 1, [name, entries[0]?.[1]]);
      return Object.fromEntries(kind === 'add' ? [...entries, [name, value]] : entries);
    });
  });
}

function placesIn(value: unknown, place: Place): Place[] {
  if (Array.isArray(value))
    return [place, ...value.flatMap((item, index) => placesIn(item, [...place, index]))];
  if (typeof value !== 'object' || value === null) return [place];
  return [place, ...Object.entries(value).flatMap(([key, item]) => placesIn(item, [...place, key]))];
}

/**
 * Returns a copy of the value in which `change` has replaced the part at `place`. Omits members
 * that become undefined.
 */
function rebuild(
  value: unknown,
  place: Place,
  change: (old: unknown, isMember: boolean) => unknown,
  isMember = false,
): unknown {
  const [head, ...remainingPlace] = place;
  if (head === undefined) return change(value, isMember);
  if (Array.isArray(value)) {
    return value.map((item, index) => (index === head ? rebuild(item, remainingPlace, change) : item));
  }
  const entries = Object.entries(value as object).map(([key, item]): [string, unknown] =>
    key === head ? [key, rebuild(item, remainingPlace, change, true)] : [key, item],
  );
  return Object.fromEntries(entries.filter(([, item]) => item !== undefined));
}
