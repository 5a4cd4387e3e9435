import { type TSchema, Type } from 'typebox';
import { MAX_EVENT_NAME_BYTES, MAX_PROPERTY_NAME_CHARS } from '../../base/limits.ts';
import { describe, objectOf, published, rule, type Wording } from '../../base/operator-file/schema.ts';

export const MAX_SEGMENT_DEPTH = 10;
export const MAX_SEGMENT_CONDITIONS = 100;
export const MAX_SEGMENT_VALUES = 1_000;
/** Maximum length of a string that a condition compares as a number or a date. */
export const MAX_COMPARED_CHARS = 100;
const maxSegmentStringChars = 1_024;
const maxSegmentDays = 36_500;
const maxSegmentEventCount = 1_000_000;

/**
 * A segment of users, which `readSegment` reads from a definition (docs/segments.md).
 * `not_in_last_days` and the like are negated operators. `compileSegment` makes SQL with all values
 * as parameters.
 */
export type Segment = Group | { readonly kind: 'not'; readonly segment: Segment } | Condition;

interface Group {
  readonly kind: 'all' | 'any';
  readonly segments: readonly Segment[];
}

export type Condition = PropertyCondition | EventCondition;

export interface PropertyCondition {
  readonly kind: 'property' | 'company_property';
  readonly property: string;
  readonly test: PropertyTest;
  /** A missing property matches a negated test. */
  readonly negated: boolean;
}

export interface EventCondition {
  readonly kind: 'event';
  readonly event: string;
  /** Minimum number of events. It is 0 only together with `atMost`. */
  readonly atLeast: number;
  readonly atMost: number | null;
  readonly withinDays: number | null;
  readonly where: readonly EventPropertyCondition[];
}

export type EventPropertyCondition = Omit<PropertyCondition, 'kind'>;

export type Scalar = string | number | boolean;

const comparisons = ['greater_than', 'greater_or_equal', 'less_than', 'less_or_equal'] as const;
export type Comparison = (typeof comparisons)[number];

/** A missing property never matches. */
export type PropertyTest =
  | { readonly kind: 'one_of'; readonly values: readonly Scalar[] }
  | { readonly kind: 'contains' | 'starts_with'; readonly text: string }
  | { readonly kind: 'exists' }
  | { readonly kind: 'compare_number'; readonly comparison: Comparison; readonly number: number }
  | { readonly kind: 'compare_date'; readonly comparison: Comparison; readonly date: string }
  | { readonly kind: 'within_days'; readonly days: number };

export interface SegmentScope {
  readonly environmentId: number;
  /** End of a period such as "within 7 days", shared by all statements of a response. */
  readonly now: Date;
}

export interface UserScope extends SegmentScope {
  readonly user: string;
  /** Events of users outside this range of ids need not be counted. */
  readonly ids?: { readonly after: string | null; readonly upTo: string | null };
  /** The only user whose events need to be counted. */
  readonly only?: string;
}

/*
 * Schemas for the language of docs/segments.md: one for each condition, and one with all conditions
 * for editors.
 */

const text = (minLength: number, maxLength: number) =>
  Type.String({
    description: 'No U+0000, no half of a surrogate pair.',
    minLength,
    maxLength,
    pattern: '^[^\\u0000\\ud800-\\udfff]*$',
    words: () => 'must not hold U+0000 or half a surrogate pair',
  });

/** Excludes 1e400, which JavaScript parses as Infinity. */
const scalar = Type.Union([text(0, maxSegmentStringChars), Type.Number(), Type.Boolean()], {
  problem(value: unknown) {
    if (typeof value === 'number') return 'must be a number within ±1.8e308';
    if (typeof value !== 'string') {
      const hint =
        value === null
          ? 'null; `exists: false` asks for a property that is missing or null'
          : describe(value);
      return `must be a string, a number, true or false, not ${hint}`;
    }
    return `must have at most ${maxSegmentStringChars} characters, and neither U+0000 nor half a surrogate pair`;
  },
});
const scalars = Type.Array(scalar, { minItems: 1, maxItems: MAX_SEGMENT_VALUES });
/** Must not be empty, because every string contains the empty string. */
const part = text(1, maxSegmentStringChars);
/** PostgreSQL cannot convert the year 0000 and zone offsets of 16 hours or more. */
const date = Type.String({
  description: 'YYYY-MM-DD, or YYYY-MM-DDTHH:MM[:SS[.fraction]] and perhaps Z or ±HH:MM.',
  maxLength: MAX_COMPARED_CHARS,
  pattern:
    '^(?!0000)([0-9]{4}-(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|[0-9]{4}-(0[469]|11)-(0[1-9]|[12][0-9]|30)' +
    '|[0-9]{4}-02-(0[1-9]|1[0-9]|2[0-8])|([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)' +
    '(T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\\.[0-9]+)?)?(Z|[+-](0[0-9]|1[0-5]):[0-5][0-9])?)?$',
});
const ordered = Type.Union([Type.Number(), date], {
  problem: rule('must be a number or a date such as "2026-11-20" or "2026-11-20T12:34:56Z"'),
});
const days = Type.Integer({ minimum: 1, maximum: maxSegmentDays });
const times = (minimum: number) => Type.Integer({ minimum, maximum: maxSegmentEventCount });

const operands = {
  equals: scalar,
  not_equals: scalar,
  in: scalars,
  not_in: scalars,
  contains: part,
  not_contains: part,
  starts_with: part,
  exists: Type.Boolean({ description: 'true: neither missing nor null.' }),
  greater_than: ordered,
  greater_or_equal: ordered,
  less_than: ordered,
  less_or_equal: ordered,
  in_last_days: days,
  not_in_last_days: days,
} as const satisfies Readonly<Record<string, TSchema>>;

export type Operator = keyof typeof operands;
export const operators = Object.keys(operands) as readonly Operator[];

export function operatorsOf(condition: object): Operator[] {
  return operators.filter((operator) => Object.hasOwn(condition, operator));
}

const optionalOperands = Object.fromEntries(
  Object.entries(operands).map(([operator, schema]) => [operator, Type.Optional(schema)]),
);
const isOneOf = `there are ${operators.join(', ')}`;

function propertyCondition(subject: string, description: string, more: object = {}) {
  const problem: Wording = (value, keyword) => {
    if (keyword === 'type') return rule('must be an object such as {"property": …, "equals": …}')(value);
    const condition = value as Readonly<Record<string, unknown>>;
    if (keyword === 'if') {
      return `${condition[subject]} is the time of the profile itself: compare it with a date, or use in_last_days`;
    }
    if (keyword !== 'oneOf') return undefined;
    const used = operatorsOf(condition);
    return used.length === 0
      ? `has no operator; ${isOneOf}`
      : `has ${used.length} operators (${used.join(', ')}); give each a condition of its own, under \`all\``;
  };
  return Type.Object(
    { [subject]: text(1, MAX_PROPERTY_NAME_CHARS), ...optionalOperands },
    {
      title: 'a condition',
      description,
      additionalProperties: false,
      oneOf: operators.map((operator) => ({ required: [operator] })),
      problem,
      unknown: () => `is no operator; ${isOneOf}`,
      ...more,
    },
  );
}

const instantOnly = (subject: string) => ({
  if: { properties: { [subject]: { enum: ['first_seen_at', 'last_seen_at'] } } },
  // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
  then: {
    properties: Object.fromEntries(
      operators
        .filter((operator) => operands[operator] !== days && operator !== 'exists')
        .map((operator) => [operator, operands[operator] === ordered ? date : false]),
    ),
  },
});

const eventProperty = propertyCondition('property', "A property in the event's metadata.");

export const conditions = {
  property: propertyCondition(
    'property',
    "A property of the user; user_id, company_id, first_seen_at and last_seen_at are the profile's own.",
    instantOnly('property'),
  ),
  company_property: propertyCondition(
    'company_property',
    "A property of the user's company; company_id, first_seen_at and last_seen_at are the profile's own.",
    instantOnly('company_property'),
  ),
  event: Type.Object(
    {
      event: text(1, MAX_EVENT_NAME_BYTES),
      at_least: Type.Optional(times(1)),
      at_most: Type.Optional(times(0)),
      never: Type.Optional(Type.Literal(true, { problem: rule('can only be true') })),
      within_days: Type.Optional(days),
      where: Type.Optional(Type.Array(eventProperty, { minItems: 1, maxItems: MAX_SEGMENT_CONDITIONS })),
    },
    {
      title: 'an event',
      description:
        'How often the user did something: once or more unless at_least, at_most or never says otherwise.',
      additionalProperties: false,
      dependentSchemas: { never: { properties: { at_least: false, at_most: false } } },
    },
  ),
} as const;

export function segmentSchema(): object {
  const ref = (name: string) => ({ $ref: `#/$defs/${name}` });
  const group = (name: string, description: string, inner: string) => ({
    ...objectOf('', description, { [name]: Type.Unsafe(ref(inner)) }),
    title: undefined,
  });
  const { property, company_property, event } = conditions;
  const names = ['all', 'any', 'not', 'userProperty', 'companyProperty', 'event'];
  return published({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'https://sluice.invalid/schemas/segment.schema.json',
    title: 'Segment',
    description: `A set of users, as docs/segments.md says. Not said here: groups nest at most ${MAX_SEGMENT_DEPTH} deep, a definition has at most ${MAX_SEGMENT_CONDITIONS} conditions, and at_most is not below at_least.`,
    ...ref('node'),
    $defs: {
      node: { type: 'object', oneOf: names.map(ref) },
      nodes: { type: 'array', items: ref('node'), minItems: 1, maxItems: MAX_SEGMENT_CONDITIONS },
      all: group('all', 'Everything in the list holds.', 'nodes'),
      any: group('any', 'Something in the list holds.', 'nodes'),
      not: group('not', 'What is inside does not hold.', 'node'),
      userProperty: property,
      companyProperty: company_property,
      eventProperty,
      event,
    },
  }) as object;
}
