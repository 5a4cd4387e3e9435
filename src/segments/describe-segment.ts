import type {
  Comparison,
  EventCondition,
  EventPropertyCondition,
  PropertyCondition,
  Scalar,
  Segment,
} from './segment.ts';

/** A line of a definition in words; `depth` says how many groups it stands in. */
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
      // Two negations are shown, since the operator wrote both.
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

/** Shown as it is, unless it could be taken for other words. */
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
