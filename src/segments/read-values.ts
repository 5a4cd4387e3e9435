import { MAX_SEGMENT_STRING_CHARS, MAX_SEGMENT_VALUES } from '../domain/limits.ts';
import { type Keys, type Problems, shown } from './problems.ts';
import type { Scalar } from './segment.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A member that the object itself has: a definition may name `__proto__` and is told what it says, no more. */
export function member(object: JsonObject, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** A text that Postgres can hold, of at most `maxChars` characters; null (and a problem) if it is not. */
export function readText(
  value: unknown,
  keys: Keys,
  problems: Problems,
  { minChars = 0, maxChars = MAX_SEGMENT_STRING_CHARS } = {},
): string | null {
  if (typeof value !== 'string') {
    problems.note(keys, `must be a string, not ${shown(value)}`);
    return null;
  }
  const problem = textProblem(value, minChars, maxChars);
  if (problem === null) return value;
  problems.note(keys, problem);
  return null;
}

export function readScalar(value: unknown, keys: Keys, problems: Problems): Scalar | null {
  if (typeof value === 'boolean') return value;
  if (typeof value === 'number') return readNumber(value, keys, problems);
  if (typeof value === 'string') return readText(value, keys, problems);
  const hint = value === null ? '; `exists: false` asks for a property that is missing or null' : '';
  problems.note(keys, `must be a string, a number, true or false, not ${shown(value)}${hint}`);
  return null;
}

export function readScalars(value: unknown, keys: Keys, problems: Problems): Scalar[] | null {
  const list = readList(value, keys, problems, MAX_SEGMENT_VALUES);
  if (list === null) return null;
  const scalars = list.map((item, index) => readScalar(item, [...keys, index], problems));
  return scalars.every((scalar) => scalar !== null) ? scalars : null;
}

/** A list with something in it; what is in it is the caller's to read. */
export function readList(
  value: unknown,
  keys: Keys,
  problems: Problems,
  maxItems: number,
): readonly unknown[] | null {
  if (!Array.isArray(value)) problems.note(keys, `must be a list, not ${shown(value)}`);
  else if (value.length === 0) problems.note(keys, 'must not be empty');
  else if (value.length > maxItems) {
    problems.note(keys, `has ${value.length} items; at most ${maxItems} are allowed`);
  } else return value;
  return null;
}

/** JSON's 1e400 is Infinity to JavaScript, and would not be compared as what was written. */
export function readNumber(value: number, keys: Keys, problems: Problems): number | null {
  if (Number.isFinite(value)) return value;
  problems.note(keys, 'must be a number within ±1.8e308');
  return null;
}

export function readWhole(
  value: unknown,
  keys: Keys,
  problems: Problems,
  least: number,
  most: number,
): number | null {
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
  problems.note(keys, `must be a whole number from ${least} to ${most}, not ${shown(value)}`);
  return null;
}

function textProblem(text: string, minChars: number, maxChars: number): string | null {
  if (minChars > 0 && text === '') return 'must not be empty';
  if (text.length > maxChars) {
    // No character is more than two UTF-16 units; so the text need not be gone through if it is far too long.
    const chars = text.length > 2 * maxChars ? text.length : Array.from(text).length;
    if (chars > maxChars) return `has more than ${maxChars} characters`;
  }
  if (text.includes('\0')) return 'holds U+0000, which no stored text does';
  return text.isWellFormed() ? null : 'holds half a surrogate pair';
}
