import type { Static } from 'typebox';
import { findProblems, type Keys, pathText, rule } from '../../base/operator-file/schema.ts';
import {
  type Comparison,
  type Condition,
  conditions,
  type EventCondition,
  type EventPropertyCondition,
  MAX_SEGMENT_CONDITIONS,
  MAX_SEGMENT_DEPTH,
  MAX_SEGMENT_VALUES,
  type Operator,
  operatorsOf,
  type PropertyCondition,
  type PropertyTest,
  type Scalar,
  type Segment,
} from './segment.ts';

const maxSegmentProblems = 100;

interface SegmentProblem {
  readonly path: string;
  readonly keys: Keys;
  readonly message: string;
}

type SegmentReading =
  | { readonly segment: Segment; readonly problems: readonly [] }
  | { readonly segment: null; readonly problems: readonly SegmentProblem[] };

type JsonObject = Readonly<Record<string, unknown>>;

const kinds = ['all', 'any', 'not', 'property', 'company_property', 'event'] as const;

/** Reads parsed JSON in the language of docs/segments.md. Reports all problems. */
export function readSegment(definition: unknown): SegmentReading {
  const reader = new Reader();
  const segment = reader.readNode(definition, [], 1);
  if (segment !== null && reader.problems.length === 0) return { segment, problems: [] };
  return { segment: null, problems: reader.problems };
}

class Reader {
  readonly problems: SegmentProblem[] = [];
  #conditions = 0;

  readNode(value: unknown, keys: Keys, depth: number): Segment | null {
    const expected = `must be an object with one of ${kinds.join(', ')}`;
    if (!isObject(value)) return this.#report(keys, rule(expected)(value));
    const kindsOfNode = kinds.filter((kind) => Object.hasOwn(value, kind));
    const [kind] = kindsOfNode;
    if (kind === undefined) return this.#report(keys, `has none of ${kinds.join(', ')}`);
    if (kindsOfNode.length > 1)
      return this.#report(keys, `has ${kindsOfNode.join(' and ')}; give one of them`);
    if (kind !== 'all' && kind !== 'any' && kind !== 'not') return this.#readCondition(kind, value, keys);
    if (!this.#mayGroup(kind, value, keys, depth)) return null;
    if (kind !== 'not') return this.#readGroup(kind, value[kind], [...keys, kind], depth);
    const segment = this.readNode(value[kind], [...keys, 'not'], depth + 1);
    return segment === null ? null : { kind, segment };
  }

  #readGroup(kind: 'all' | 'any', list: unknown, keys: Keys, depth: number): Segment | null {
    if (!Array.isArray(list)) return this.#report(keys, rule('must be a list')(list));
    if (list.length === 0) return this.#report(keys, 'must not be empty');
    if (this.#isTooLong(list, keys, MAX_SEGMENT_CONDITIONS)) return null;
    const segments: Segment[] = [];
    for (const [index, item] of list.entries()) {
      if (this.#isFull) return null;
      const segment = this.readNode(item, [...keys, index], depth + 1);
      if (segment !== null) segments.push(segment);
    }
    return { kind, segments };
  }

  /** A group must be the only member of its object. Reports other members. */
  #mayGroup(kind: string, object: JsonObject, keys: Keys, depth: number): boolean {
    for (const key of Object.keys(object)) {
      if (this.#isFull) return false;
      if (key !== kind) this.#report([...keys, key], `cannot stand beside ${kind}`);
    }
    if (depth <= MAX_SEGMENT_DEPTH) return true;
    const what = `is nested too deep: at most ${MAX_SEGMENT_DEPTH} of all, any and not inside one another`;
    return this.#report(keys, what) !== null;
  }

  #readCondition(kind: keyof typeof conditions, value: JsonObject, keys: Keys): Condition | null {
    const inner = kind === 'event' && Array.isArray(value['where']) ? value['where'].length : 0;
    this.#count(1 + inner);
    for (const name of ['in', 'not_in', 'where']) {
      const list = value[name];
      if (Array.isArray(list) && this.#isTooLong(list, [...keys, name], MAX_SEGMENT_VALUES)) return null;
    }
    if (this.#isFull) return null;
    const problems = findProblems(conditions[kind], value);
    for (const problem of problems) this.#report([...keys, ...problem.keys], problem.what);
    if (kind === 'event' && this.#contradicts(value, keys)) return null;
    if (problems.length > 0) return null;
    if (kind === 'event') return eventCondition(value as Static<(typeof conditions)['event']>);
    return { kind, ...propertyCondition(kind, value) };
  }

  #contradicts({ never, at_least, at_most }: JsonObject, keys: Keys): boolean {
    const isCounted = at_least !== undefined || at_most !== undefined;
    if (never !== undefined && isCounted) {
      this.#report([...keys, 'never'], 'cannot stand beside at_least or at_most');
      return true;
    }
    if (typeof at_least !== 'number' || typeof at_most !== 'number' || at_most >= at_least) return false;
    this.#report([...keys, 'at_most'], 'is less than at_least: no user could have both');
    return true;
  }

  #isTooLong(list: readonly unknown[], keys: Keys, max: number): boolean {
    if (list.length <= max) return false;
    this.#report(keys, `has ${list.length} items; at most ${max} are allowed`);
    return true;
  }

  /** True if there are too many conditions or problems. Further problems are then not reported. */
  get #isFull(): boolean {
    return this.#conditions > MAX_SEGMENT_CONDITIONS || this.problems.length >= maxSegmentProblems;
  }

  #count(conditions: number): void {
    const before = this.#conditions;
    this.#conditions += conditions;
    if (before > MAX_SEGMENT_CONDITIONS || this.#conditions <= MAX_SEGMENT_CONDITIONS) return;
    this.#report([], `has more than ${MAX_SEGMENT_CONDITIONS} conditions`);
  }

  #report(keys: Keys, message: string): null {
    if (this.problems.length < maxSegmentProblems) {
      this.problems.push({ path: pathText('definition', keys), keys, message });
    }
    return null;
  }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function eventCondition(value: Static<(typeof conditions)['event']>): EventCondition {
  const { event, never, at_least, at_most, within_days, where = [] } = value;
  const atMost = never === true ? 0 : (at_most ?? null);
  return {
    kind: 'event',
    event,
    atLeast: at_least ?? (atMost === null ? 1 : 0),
    atMost,
    withinDays: within_days ?? null,
    where: where.map((condition) => propertyCondition('property', condition)),
  };
}

function propertyCondition(subject: string, condition: JsonObject): EventPropertyCondition {
  const [operator] = operatorsOf(condition) as [Operator];
  const value = condition[operator];
  const negated = operator.startsWith('not_') || (operator === 'exists' && value === false);
  return { property: String(condition[subject]), test: testOf(operator, value), negated };
}

function testOf(operator: Operator, value: unknown): PropertyTest {
  switch (operator) {
    case 'equals':
    case 'not_equals':
      return { kind: 'one_of', values: [value as Scalar] };
    case 'in':
    case 'not_in':
      return { kind: 'one_of', values: value as Scalar[] };
    case 'contains':
    case 'not_contains':
      return { kind: 'contains', text: String(value) };
    case 'starts_with':
      return { kind: 'starts_with', text: String(value) };
    case 'exists':
      return { kind: 'exists' };
    case 'in_last_days':
    case 'not_in_last_days':
      return { kind: 'within_days', days: Number(value) };
    default:
      return typeof value === 'number'
        ? { kind: 'compare_number', comparison: operator, number: value }
        : { kind: 'compare_date', comparison: operator, date: value as string };
  }
}

/** `depth` is the number of enclosing groups. */
interface SegmentLine {
  readonly depth: number;
  readonly text: string;
}

export function describeSegment(segment: Segment): SegmentLine[] {
  return linesOf(segment, 0, '');
}

function linesOf(segment: Segment, depth: number, not: '' | 'not: '): SegmentLine[] {
  switch (segment.kind) {
    case 'all':
    case 'any': {
      const text = `${not}${segment.kind === 'all' ? 'all of these hold' : 'any of these holds'}`;
      return [{ depth, text }, ...segment.segments.flatMap((inner) => linesOf(inner, depth + 1, ''))];
    }
    case 'not':
      // Shows a double negation as the operator wrote it.
      if (not === '') return linesOf(segment.segment, depth, 'not: ');
      return [{ depth, text: 'not:' }, ...linesOf(segment.segment, depth + 1, 'not: ')];
    case 'event':
      return [{ depth, text: not + describeEvent(segment) }];
    default:
      return [{ depth, text: not + describeProperty(segment) }];
  }
}

function describeProperty(condition: PropertyCondition): string {
  const of = condition.kind === 'company_property' ? ' of the company' : '';
  return describeTest(condition, `${nameOf(condition.property)}${of}`);
}

function nameOf(property: string): string {
  return /^[\w.$-]+$/.test(property) ? property : JSON.stringify(property);
}

const comparisons: Readonly<Record<Comparison, readonly [number: string, date: string]>> = {
  greater_than: ['is above', 'is after'],
  greater_or_equal: ['is at least', 'is on or after'],
  less_than: ['is below', 'is before'],
  less_or_equal: ['is at most', 'is on or before'],
};

function describeTest({ test, negated }: EventPropertyCondition, name: string): string {
  switch (test.kind) {
    case 'one_of':
      return `${name} ${negated ? 'is not' : 'is'} ${listOf(test.values)}`;
    case 'contains':
      return `${name} ${negated ? 'does not contain' : 'contains'} ${JSON.stringify(test.text)}`;
    case 'starts_with':
      return `${name} ${negated ? 'does not begin with' : 'begins with'} ${JSON.stringify(test.text)}`;
    case 'exists':
      return `${name} ${negated ? 'is missing' : 'is there'}`;
    case 'compare_number':
      return `${name} ${comparisons[test.comparison][0]} ${test.number}`;
    case 'compare_date':
      return `${name} ${comparisons[test.comparison][1]} ${test.date}`;
    case 'within_days':
      return `${name} is ${negated ? 'not ' : ''}within the last ${daysOf(test.days)}`;
  }
}

const mostListed = 20;

function listOf(values: readonly Scalar[]): string {
  const shown = values.slice(0, mostListed).map((value) => JSON.stringify(value));
  const rest = values.length - shown.length;
  if (rest > 0) return `one of ${shown.join(', ')} and ${rest} more`;
  const last = shown.pop() ?? '';
  return shown.length === 0 ? last : `${shown.join(', ')} or ${last}`;
}

function daysOf(days: number): string {
  return days === 1 ? '24 hours' : `${days} days`;
}

function describeEvent({ event, atLeast, atMost, withinDays, where }: EventCondition): string {
  const when = withinDays === null ? '' : ` in the last ${daysOf(withinDays)}`;
  const which = where.map((condition) => describeTest(condition, nameOf(condition.property)));
  const only = which.length === 0 ? '' : `, where ${which.join(' and ')}`;
  return `${howOften(atLeast, atMost)} ${JSON.stringify(event)}${when}${only}`;
}

function howOften(atLeast: number, atMost: number | null): string {
  if (atMost === 0) return 'never did';
  if (atMost === null) return atLeast <= 1 ? 'did' : `did at least ${timesOf(atLeast)}`;
  if (atMost === atLeast) return `did exactly ${timesOf(atLeast)}`;
  return atLeast === 0 ? `did at most ${timesOf(atMost)}` : `did ${atLeast} to ${timesOf(atMost)}`;
}

function timesOf(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}
