import { expect, test } from 'vitest';
import { describeSegment, readSegment } from '../../../src/lookups/segments/read-segment.ts';

function words(definition: unknown): string[] {
  const { segment } = readSegment(definition);
  if (segment === null) throw new Error('no definition');
  return describeSegment(segment).map(({ depth, text }) => `${'  '.repeat(depth)}${text}`);
}

test('a definition becomes one line for each group and condition, with its depth', () => {
  const definition = {
    all: [
      { property: 'plan', in: ['pro', 'enterprise'] },
      { company_property: 'seats', greater_or_equal: 50 },
      {
        any: [
          { event: 'report_exported', at_least: 3, within_days: 30 },
          { event: 'x', never: true },
        ],
      },
      { not: { property: 'email', contains: '@example.com' } },
      { not: { not: { all: [{ property: 'a b', exists: false }] } } },
    ],
  };
  expect(words(definition)).toEqual([
    'all of these hold',
    '  plan is "pro" or "enterprise"',
    '  seats of the company is at least 50',
    '  any of these holds',
    '    did at least 3 times "report_exported" in the last 30 days',
    '    never did "x"',
    '  not: email contains "@example.com"',
    '  not:',
    '    not: all of these hold',
    '      "a b" is missing',
  ]);
});

test.each([
  [{ property: 'plan', not_equals: 'free' }, 'plan is not "free"'],
  [{ property: 'plan', not_in: ['a', 1, true] }, 'plan is not "a", 1 or true'],
  [{ property: 'n', in: Array.from({ length: 22 }, (_, at) => at) }, /^n is one of 0, .*, 19 and 2 more$/],
  [{ property: 'mail', not_contains: '+' }, 'mail does not contain "+"'],
  [{ property: 'title', starts_with: 'Head "of"' }, 'title begins with "Head \\"of\\""'],
  [{ property: 'phone', exists: true }, 'phone is there'],
  [{ property: 'n', less_than: 2 }, 'n is below 2'],
  [{ property: 'ends', less_or_equal: '2026-11-30' }, 'ends is on or before 2026-11-30'],
  [{ property: 'last_seen_at', not_in_last_days: 30 }, 'last_seen_at is not within the last 30 days'],
  [{ event: 'e', at_most: 3 }, 'did at most 3 times "e"'],
  [{ event: 'e', at_least: 1, at_most: 1 }, 'did exactly once "e"'],
  [
    { event: 'e', at_least: 2, at_most: 3, where: [{ property: 'amount', greater_than: 100 }] },
    'did 2 to 3 times "e", where amount is above 100',
  ],
  [{ event: 'e', within_days: 1 }, 'did "e" in the last 24 hours'],
])('the segment %j is described in words', (definition, expectedLine) => {
  const [line = ''] = words(definition);
  if (typeof expectedLine === 'string') expect(line).toBe(expectedLine);
  else expect(line).toMatch(expectedLine);
});
