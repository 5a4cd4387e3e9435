/**
 * A segment as it is worked with: what `readSegment` makes of a definition (docs/segments.md; its schema is in
 * definition-schema.ts). Operators that say the opposite of another are that other one, negated; so the meaning of each
 * test is written down once. `compileSegment` makes a condition of SQL of it, with every value as a parameter.
 */
export type Segment = Group | Negation | Condition;

export interface Group {
  readonly kind: 'all' | 'any';
  readonly segments: readonly Segment[];
}

export interface Negation {
  readonly kind: 'not';
  readonly segment: Segment;
}

export type Condition = PropertyCondition | EventCondition;

/** A property of the user, or of the company it belongs to. */
export interface PropertyCondition {
  readonly kind: 'property' | 'company_property';
  readonly property: string;
  readonly test: PropertyTest;
  /** Holds where the test does not, a missing property included. */
  readonly negated: boolean;
}

export interface EventCondition {
  readonly kind: 'event';
  readonly event: string;
  /** How many such events; 0 only beside an `atMost`. */
  readonly atLeast: number;
  readonly atMost: number | null;
  /** null: ever. */
  readonly withinDays: number | null;
  /** Properties in the event's metadata; an event counts if all hold. */
  readonly where: readonly EventPropertyCondition[];
}

export type EventPropertyCondition = Omit<PropertyCondition, 'kind'>;

export type Scalar = string | number | boolean;

export const comparisons = ['greater_than', 'greater_or_equal', 'less_than', 'less_or_equal'] as const;
export type Comparison = (typeof comparisons)[number];

/** Never holds of a property that is missing. */
export type PropertyTest =
  | { readonly kind: 'one_of'; readonly values: readonly Scalar[] }
  | { readonly kind: 'contains' | 'starts_with'; readonly text: string }
  | { readonly kind: 'exists' }
  | { readonly kind: 'compare_number'; readonly comparison: Comparison; readonly number: number }
  /** The date as the schema of a definition takes it. */
  | { readonly kind: 'compare_date'; readonly comparison: Comparison; readonly date: string }
  | { readonly kind: 'within_days'; readonly days: number };

/** What a segment is asked of: one environment, at one moment. */
export interface SegmentScope {
  readonly environmentId: number;
  /** The moment that days are counted back from. One for all statements that are to agree. */
  readonly now: Date;
}

export interface UserScope extends SegmentScope {
  /** What the query calls sluice.users. */
  readonly user: string;
}
