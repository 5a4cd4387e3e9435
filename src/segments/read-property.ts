import { MAX_PROPERTY_NAME_CHARS } from '../domain/limits.ts';
import type { Keys, Problems } from './problems.ts';
import { profileColumn } from './profile-columns.ts';
import { isOperator, type Operator, operators, type ReadTest, readTest } from './read-test.ts';
import { type JsonObject, member, readText } from './read-values.ts';
import type { EventPropertyCondition, PropertyCondition } from './segment.ts';

/** `{property: …, <operator>: …}`, of the user or, under `company_property`, of its company. */
export function readPropertyCondition(
  kind: PropertyCondition['kind'],
  object: JsonObject,
  keys: Keys,
  problems: Problems,
): PropertyCondition | null {
  const condition = readCondition(kind, object, keys, problems);
  if (condition === null) return null;
  if (profileColumn(kind, condition.property)?.type === 'instant' && !asksOfAnInstant(condition)) {
    const what = `${condition.property} is the time of the profile itself: compare it with a date, or use in_last_days`;
    problems.note(keys, what);
    return null;
  }
  return { kind, ...condition };
}

/** The same of an event's metadata, where no name means anything else. */
export function readEventProperty(
  object: JsonObject,
  keys: Keys,
  problems: Problems,
): EventPropertyCondition | null {
  return readCondition('property', object, keys, problems);
}

function readCondition(
  subject: PropertyCondition['kind'],
  object: JsonObject,
  keys: Keys,
  problems: Problems,
): EventPropertyCondition | null {
  problems.countCondition();
  const lengths = { minChars: 1, maxChars: MAX_PROPERTY_NAME_CHARS };
  const property = readText(member(object, subject), [...keys, subject], problems, lengths);
  const test = readOnlyTest(subject, object, keys, problems);
  return property === null || test === null ? null : { property, ...test };
}

function readOnlyTest(subject: string, object: JsonObject, keys: Keys, problems: Problems): ReadTest | null {
  const given: Operator[] = [];
  for (const key of Object.keys(object)) {
    if (problems.isFull) return null;
    if (isOperator(key)) given.push(key);
    else if (key !== subject)
      problems.note([...keys, key], `is no operator; there are ${operators.join(', ')}`);
  }
  const tests = given.map((operator) =>
    readTest(operator, member(object, operator), [...keys, operator], problems),
  );
  if (given.length === 1) return tests[0] ?? null;
  problems.note(
    keys,
    given.length === 0
      ? `has no operator; there are ${operators.join(', ')}`
      : `has ${given.length} operators (${given.join(', ')}); give each a condition of its own, under \`all\``,
  );
  return null;
}

function asksOfAnInstant({ test }: EventPropertyCondition): boolean {
  return test.kind === 'compare_date' || test.kind === 'within_days' || test.kind === 'exists';
}
