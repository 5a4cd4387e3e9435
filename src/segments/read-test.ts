import { MAX_SEGMENT_DAYS } from '../domain/limits.ts';
import { isDateText } from './date-text.ts';
import { type Keys, type Problems, shown } from './problems.ts';
import { readNumber, readScalar, readScalars, readText, readWhole } from './read-values.ts';
import type { Comparison, PropertyTest } from './segment.ts';

export interface ReadTest {
  readonly test: PropertyTest;
  readonly negated: boolean;
}

type ReadOperand = (value: unknown, keys: Keys, problems: Problems) => ReadTest | null;

/** What each operator makes of the value beside it. */
const operands = {
  equals: oneOf(readOne, false),
  not_equals: oneOf(readOne, true),
  in: oneOf(readScalars, false),
  not_in: oneOf(readScalars, true),
  contains: text('contains', false),
  not_contains: text('contains', true),
  starts_with: text('starts_with', false),
  exists: readExists,
  greater_than: comparedWith('greater_than'),
  greater_or_equal: comparedWith('greater_or_equal'),
  less_than: comparedWith('less_than'),
  less_or_equal: comparedWith('less_or_equal'),
  in_last_days: days(false),
  not_in_last_days: days(true),
} as const satisfies Readonly<Record<string, ReadOperand>>;

export type Operator = keyof typeof operands;
export const operators = Object.keys(operands) as readonly Operator[];

export function isOperator(key: string): key is Operator {
  return Object.hasOwn(operands, key);
}

/** null (and problems noted) if the operator cannot take this value. */
export function readTest(
  operator: Operator,
  value: unknown,
  keys: Keys,
  problems: Problems,
): ReadTest | null {
  return operands[operator](value, keys, problems);
}

function readOne(value: unknown, keys: Keys, problems: Problems) {
  const scalar = readScalar(value, keys, problems);
  return scalar === null ? null : [scalar];
}

function oneOf(read: typeof readScalars | typeof readOne, negated: boolean): ReadOperand {
  return (value, keys, problems) => {
    const values = read(value, keys, problems);
    return values === null ? null : { test: { kind: 'one_of', values }, negated };
  };
}

/** Every string contains the empty one: such a condition would be a mistake. */
function text(kind: 'contains' | 'starts_with', negated: boolean): ReadOperand {
  return (value, keys, problems) => {
    const wanted = readText(value, keys, problems, { minChars: 1 });
    return wanted === null ? null : { test: { kind, text: wanted }, negated };
  };
}

function readExists(value: unknown, keys: Keys, problems: Problems): ReadTest | null {
  if (typeof value === 'boolean') return { test: { kind: 'exists' }, negated: !value };
  problems.note(keys, `must be true or false, not ${shown(value)}`);
  return null;
}

function comparedWith(comparison: Comparison): ReadOperand {
  return (value, keys, problems) => {
    if (typeof value === 'number') {
      const number = readNumber(value, keys, problems);
      return number === null
        ? null
        : { test: { kind: 'compare_number', comparison, number }, negated: false };
    }
    if (typeof value === 'string' && isDateText(value)) {
      return { test: { kind: 'compare_date', comparison, date: value }, negated: false };
    }
    problems.note(
      keys,
      `must be a number or a date such as "2026-11-20" or "2026-11-20T12:34:56Z", not ${shown(value)}`,
    );
    return null;
  };
}

function days(negated: boolean): ReadOperand {
  return (value, keys, problems) => {
    const count = readWhole(value, keys, problems, 1, MAX_SEGMENT_DAYS);
    return count === null ? null : { test: { kind: 'within_days', days: count }, negated };
  };
}
