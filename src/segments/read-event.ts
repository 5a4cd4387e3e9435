import {
  MAX_EVENT_NAME_BYTES,
  MAX_SEGMENT_CONDITIONS,
  MAX_SEGMENT_DAYS,
  MAX_SEGMENT_EVENT_COUNT,
} from '../domain/limits.ts';
import { type Keys, type Problems, shown } from './problems.ts';
import { readEventProperty } from './read-property.ts';
import { isObject, type JsonObject, member, readList, readText, readWhole } from './read-values.ts';
import type { EventCondition, EventPropertyCondition } from './segment.ts';

const known = new Set(['event', 'at_least', 'at_most', 'never', 'within_days', 'where']);

type Times = Pick<EventCondition, 'atLeast' | 'atMost'>;

/** `{event: …, at_least, at_most or never, within_days, where}` */
export function readEventCondition(
  object: JsonObject,
  keys: Keys,
  problems: Problems,
): EventCondition | null {
  problems.countCondition();
  for (const key of Object.keys(object)) {
    if (problems.isFull) return null;
    if (!known.has(key)) problems.note([...keys, key], `is unknown here; there are ${[...known].join(', ')}`);
  }
  const lengths = { minChars: 1, maxChars: MAX_EVENT_NAME_BYTES };
  const event = readText(member(object, 'event'), [...keys, 'event'], problems, lengths);
  const times = readTimes(object, keys, problems);
  const days = readDays(object, keys, problems);
  const where = readWhere(object, keys, problems);
  if (event === null || times === null || days === null || where === null) return null;
  return { kind: 'event', event, ...times, ...days, where };
}

function readTimes(object: JsonObject, keys: Keys, problems: Problems): Times | null {
  const count = (key: string, least: number) =>
    readWhole(member(object, key), [...keys, key], problems, least, MAX_SEGMENT_EVENT_COUNT);
  const hasLeast = Object.hasOwn(object, 'at_least');
  const hasMost = Object.hasOwn(object, 'at_most');
  const atLeast = hasLeast ? count('at_least', 1) : 0;
  const atMost = hasMost ? count('at_most', 0) : null;
  if (Object.hasOwn(object, 'never')) return readNever(object, keys, problems, hasLeast || hasMost);
  if (atLeast === null || (hasMost && atMost === null)) return null;
  if (!hasMost) return { atLeast: Math.max(atLeast, 1), atMost: null };
  if (atMost !== null && atMost < atLeast) {
    problems.note([...keys, 'at_most'], `is less than at_least: no user could have both`);
    return null;
  }
  return { atLeast, atMost };
}

function readNever(object: JsonObject, keys: Keys, problems: Problems, isCounted: boolean): Times | null {
  const never = member(object, 'never');
  if (never !== true) problems.note([...keys, 'never'], `can only be true, not ${shown(never)}`);
  if (isCounted) problems.note([...keys, 'never'], 'cannot stand beside at_least or at_most');
  return never === true && !isCounted ? { atLeast: 0, atMost: 0 } : null;
}

function readDays(
  object: JsonObject,
  keys: Keys,
  problems: Problems,
): Pick<EventCondition, 'withinDays'> | null {
  if (!Object.hasOwn(object, 'within_days')) return { withinDays: null };
  const at = [...keys, 'within_days'];
  const withinDays = readWhole(member(object, 'within_days'), at, problems, 1, MAX_SEGMENT_DAYS);
  return withinDays === null ? null : { withinDays };
}

function readWhere(object: JsonObject, keys: Keys, problems: Problems): EventPropertyCondition[] | null {
  if (!Object.hasOwn(object, 'where')) return [];
  const at = [...keys, 'where'];
  const list = readList(member(object, 'where'), at, problems, MAX_SEGMENT_CONDITIONS);
  if (list === null) return null;
  const conditions = list.map((item, index) => {
    if (isObject(item)) return readEventProperty(item, [...at, index], problems);
    problems.note(
      [...at, index],
      `must be an object such as {"property": …, "equals": …}, not ${shown(item)}`,
    );
    return null;
  });
  return conditions.every((condition) => condition !== null) ? conditions : null;
}
