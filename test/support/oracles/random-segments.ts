import fc from 'fast-check';
import type { Stored, World, WorldCompany, WorldEvent, WorldUser } from './segment-evaluator.ts';

/**
 * All ids, names and values are awkward. There are only a few of each, so that they often coincide.
 */

export const now = new Date('2026-11-20T12:00:00.000Z');

/** Names of properties and events. Four of these names are also names of columns. */
const names = [
  ...['a.b', `it's "quoted"`, 'back\\slash', "'); drop table users; --"],
  ...listed('plan|__proto__|constructor|$1|%_|é😀|user_id|company_id|first_seen_at|last_seen_at'),
];

const numerals = [
  ...listed('0|-0|12|12.0|-12|0.1|0.10|1e2|1E+2|100|1e-7|-1.5e3|9007199254740993|1e400|-1e400|1e-400|1e999'),
  ...['1.7976931348623157e308', '5e-324', '9'.repeat(100), `0.${'1'.repeat(98)}`],
];

/** Strings that look like numbers but are not. */
const notNumerals = [
  ...listed('007|+1|1,000|.5|5.| 1|1 |1\n|0x10|1_000|１２|٣|--1|-|e5|1e|1e1000|NaN|Infinity|-Infinity|inf'),
  ...['9'.repeat(101), `1e${'9'.repeat(50)}`, '1e400000', '-9'.repeat(40)],
];

const dates = [
  ...listed('2026-11-20|2026-11-19|2026-11-21|2026-02-28|2024-02-29|2000-02-29|0001-01-01|9999-12-31'),
  ...listed('2026-11-20T12:00|2026-11-20T12:00:00Z|2026-11-19T12:00:00.000Z|2026-11-19T11:59:59.999999Z'),
  ...listed('2026-11-20T00:00:00Z|2026-11-19T23:59:59.9999999Z|2026-11-20T12:00:00.0000009Z'),
  ...listed('2026-11-20T12:00:00.000001Z|2026-11-20T13:30:00+01:30|2026-11-21T03:59:00+15:59'),
  ...listed('2026-11-19T20:01-15:59|0001-01-01T00:00+15:59|9999-12-31T23:59:59.999999-15:59'),
  ...listed('1582-10-10|0099-03-01T01:02:03.4'),
  `2026-11-20T12:00:00.${'0'.repeat(80)}`,
];

/** Strings that look like dates but are not. */
const notDates = [
  ...listed('2026-02-30|2026-02-29|1900-02-29|2026-04-31|2026-13-01|2026-00-10|2026-01-00|0000-01-01'),
  ...listed('2026-11-20T24:00|2026-11-20T12:60|2026-11-20T12:00:60|2026-11-20T12:00:00.|2026-11-20T'),
  ...listed('2026-11-20 |2026-11-20 12:00|2026-11-20t12:00z|2026-11-20T12:00+16:00|2026-11-20T12:00+01'),
  ...listed('2026-11-20T12:00+0100|2026-11-20T12|20261120|2026-11|2026-11-20\n|now|today|infinity'),
  ...listed('12026-11-20|2026-11-20Z|2026-11-20BC|2026-11-20T12:00:00 UTC|２０２６-11-20'),
  `2026-11-20T12:00:00.${'0'.repeat(81)}`,
];

const texts = [
  ...listed(
    `| |pro|Pro|prof|a%b|a_b|axb|%|_|\\|\\\\|"|""|'|''|$1|{}|[]|{"|true|false|True|null|undefined|__proto__`,
  ),
  ...listed('ü|u\u0308|😀|\u{1F600}\u{1F600}|\t\n\r|\u0001|\uffff|\u2028|u1|c1'),
  ...['x'.repeat(1_000), "'); drop table users; --"],
];

function listed(texts: string): string[] {
  return texts.split('|');
}

/** Removes, adds or replaces one character. */
const typo = (text: fc.Arbitrary<string>) =>
  fc
    .tuple(
      text,
      fc.nat(),
      fc.constantFrom('', '0', '9', '-', ':', '.', 'Z', 'e', '+', ' ', 'T', '\n'),
      fc.boolean(),
    )
    .map(([from, at, character, replace]) => {
      const place = at % (from.length + 1);
      return from.slice(0, place) + character + from.slice(place + (replace ? 1 : 0));
    });

const anyText = fc
  .string({ unit: 'binary', maxLength: 8 })
  .map((text) => text.replaceAll('\0', ''))
  .filter((text) => text.isWellFormed());

const text = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...texts) },
  { weight: 2, arbitrary: fc.constantFrom(...numerals, ...notNumerals) },
  { weight: 2, arbitrary: fc.constantFrom(...dates, ...notDates) },
  { weight: 1, arbitrary: typo(fc.constantFrom(...numerals)) },
  { weight: 1, arbitrary: typo(fc.constantFrom(...dates)) },
  { weight: 1, arbitrary: anyText },
);

const name = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom(...names) },
  { weight: 1, arbitrary: anyText.filter((any) => any !== '') },
);

const storedValue = fc.oneof(
  { weight: 6, arbitrary: text.map((value) => JSON.stringify(value)) },
  { weight: 3, arbitrary: fc.constantFrom(...numerals) },
  {
    weight: 1,
    arbitrary: fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  },
  { weight: 2, arbitrary: fc.constantFrom('true', 'false') },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      ...listed('[]|{}|["pro"]|[12]|[true]|{"plan": "pro"}|[null]|{"a": {"b": [1e400]}}'),
    ),
  },
);

const stored = (value: fc.Arbitrary<string>): fc.Arbitrary<Stored> =>
  fc.array(fc.tuple(name, value), { maxLength: 5 }).map((members) => new Map(members));

const instant = fc.oneof(
  fc.constantFrom(
    ...listed('2026-11-20T12:00:00.000Z|2026-11-20T12:00:00.001Z|2026-11-19T12:00:00.000Z'),
    ...listed('2026-11-19T11:59:59.999Z|2026-11-20T00:00:00.000Z|2026-11-19T23:59:59.999Z'),
    ...listed('2026-11-13T12:00:00.000Z|2026-11-13T11:59:59.999Z'),
  ),
  fc
    .date({ min: new Date('2026-10-01'), max: new Date('2026-12-30'), noInvalidDate: true })
    .map((at) => at.toISOString()),
);

const userIds = ['u1', 'U1', '12', '12.0', '2026-11-20', 'o\'hara "x" \\ %_', 'é😀', '__proto__'];
const companyIds = ['c1', 'C1', '12', 'u1', '"'];

const user: fc.Arbitrary<WorldUser> = fc.record({
  userId: fc.constantFrom(...userIds),
  companyId: fc.option(fc.constantFrom(...companyIds), { nil: null, freq: 4 }),
  metadata: stored(storedValue),
  firstSeenAt: instant,
  lastSeenAt: instant,
});

const company: fc.Arbitrary<WorldCompany> = fc.record({
  companyId: fc.constantFrom(...companyIds),
  metadata: stored(storedValue),
  firstSeenAt: instant,
  lastSeenAt: instant,
});

const event: fc.Arbitrary<WorldEvent> = fc.record({
  name: fc.constantFrom('signed up', 'signed up', 'paid', '__proto__'),
  userId: fc.constantFrom(...userIds),
  at: instant,
  // Only properties of events may be null.
  metadata: stored(
    fc.oneof({ weight: 5, arbitrary: storedValue }, { weight: 1, arbitrary: fc.constant('null') }),
  ),
});

export const world: fc.Arbitrary<World> = fc.record({
  users: fc.uniqueArray(user, { minLength: 2, maxLength: 8, selector: ({ userId }) => userId }),
  companies: fc.uniqueArray(company, { maxLength: 4, selector: ({ companyId }) => companyId }),
  events: fc.array(event, { minLength: 4, maxLength: 24 }),
  now: fc.constant(now),
});

const number = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom(0, -0, 12, -12, 12.5, 0.1, 100, 1e-7, 1e21, 5e-324, Number.MAX_VALUE),
  },
  { weight: 1, arbitrary: fc.double({ noNaN: true, noDefaultInfinity: true }) },
);
const scalar = fc.oneof({ weight: 3, arbitrary: text }, { weight: 2, arbitrary: number }, fc.boolean());
const date = fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...dates) }, instant);
const days = fc.constantFrom(1, 1, 7, 30, 36_500);
const ordered = ['greater_than', 'greater_or_equal', 'less_than', 'less_or_equal'];

const instantTest = fc.oneof(
  fc.tuple(fc.constant('exists'), fc.boolean()),
  fc.tuple(fc.constantFrom(...ordered), date),
  fc.tuple(fc.constantFrom('in_last_days', 'not_in_last_days'), days),
);
const anyTest = fc.oneof(
  { weight: 1, arbitrary: instantTest },
  { weight: 1, arbitrary: fc.tuple(fc.constantFrom(...ordered), number) },
  { weight: 1, arbitrary: fc.tuple(fc.constantFrom('equals', 'not_equals'), scalar) },
  {
    weight: 1,
    arbitrary: fc.tuple(fc.constantFrom('in', 'not_in'), fc.array(scalar, { minLength: 1, maxLength: 12 })),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(
      fc.constantFrom('contains', 'not_contains', 'starts_with'),
      text.filter((any) => any !== ''),
    ),
  },
);

function propertyCondition(subject: 'property' | 'company_property', hasColumns = true) {
  return name.chain((property) => {
    const isInstant = hasColumns && (property === 'first_seen_at' || property === 'last_seen_at');
    return (isInstant ? instantTest : anyTest).map(([operator, value]) => ({
      [subject]: property,
      [operator]: value,
    }));
  });
}

const times = fc.oneof(
  fc.constant({}),
  fc.constant({ never: true }),
  fc.constantFrom({ at_least: 1 }, { at_least: 2 }, { at_least: 3 }, { at_least: 1_000_000 }),
  fc.constantFrom({ at_most: 0 }, { at_most: 1 }, { at_most: 2 }),
  fc.constantFrom({ at_least: 1, at_most: 1 }, { at_least: 1, at_most: 2 }, { at_least: 2, at_most: 3 }),
);

const eventCondition = fc
  .tuple(
    fc.constantFrom('signed up', 'signed up', 'paid', '__proto__', `'"\\%_`),
    times,
    fc.option(days, { nil: null }),
    fc.oneof(fc.constant([]), fc.array(propertyCondition('property', false), { maxLength: 2 })),
  )
  .map(([called, often, withinDays, where]) => ({
    event: called,
    ...often,
    ...(withinDays === null ? {} : { within_days: withinDays }),
    ...(where.length === 0 ? {} : { where }),
  }));

/**
 * Values that one property has for different users, as JSON, and conditions on that property. These
 * values and conditions cover far more combinations than random users with random properties.
 */
export const storedValues = fc.array(storedValue, { minLength: 60, maxLength: 60 });
export const conditionsOn = (property: string): fc.Arbitrary<object[]> =>
  fc.array(
    anyTest.map(([operator, value]) => ({ property, [operator]: value })),
    { minLength: 12, maxLength: 12 },
  );

export const definition: fc.Arbitrary<object> = fc.letrec<{ node: object }>((tie) => {
  const some = fc.array(tie('node'), { minLength: 1, maxLength: 3 });
  return {
    node: fc.oneof(
      { maxDepth: 4, depthIdentifier: 'segment' },
      { weight: 4, arbitrary: propertyCondition('property') },
      { weight: 2, arbitrary: propertyCondition('company_property') },
      { weight: 3, arbitrary: eventCondition },
      { weight: 1, arbitrary: some.map((all) => ({ all })) },
      { weight: 1, arbitrary: some.map((any) => ({ any })) },
      { weight: 1, arbitrary: tie('node').map((not) => ({ not })) },
    ),
  };
}).node;
