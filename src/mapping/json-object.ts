import { MAX_DEPTH, MAX_RECORD_PROPERTIES, MAX_VALUE_BYTES } from '../domain/limits.ts';
import type { Reason } from '../domain/reject.ts';
import { propertyNameProblem } from './column-plan.ts';
import { markedNumber, numberInRange, type ParsedJson, tooDeep, writeJson } from './json-text.ts';

export type JsonObject = Record<string, unknown>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** `{}`, or `[]`, which PHP writes for it. */
export function isEmptyObject(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (!isObject(value)) return false;
  for (const _ in value) return false;
  return true;
}

/** `,"a":1` is the least that one takes. */
const leastPropertyBytes = 6;

/** To be asked before the properties are looked at one by one, and their names noted. Of few bytes nothing is counted. */
export function hasTooManyProperties(object: JsonObject, sourceBytes: number): boolean {
  if (sourceBytes < MAX_RECORD_PROPERTIES * leastPropertyBytes) return false;
  return Object.keys(object).length > MAX_RECORD_PROPERTIES;
}

/** `path` is of the object that has them. */
export function tooManyProperties(path: string): Reason {
  return {
    code: 'record_too_large',
    message: `the record has more than ${MAX_RECORD_PROPERTIES} properties`,
    column: path === '' ? null : path,
  };
}

/**
 * Why one property of a decoded record cannot be kept, or null. `mayBeLarge`: the text it came from is long enough for
 * a value to be too large.
 */
export function propertyProblem(
  name: string,
  value: unknown,
  parsed: ParsedJson,
  path: string,
  mayBeLarge: boolean,
): Reason | null {
  return (
    nameProblem(name, path) ??
    valueProblem(value, 2, path === '' ? name : `${path}.${name}`) ??
    (mayBeLarge ? sizeProblem(value, name, path, parsed) : null)
  );
}

function nameProblem(name: string, path: string): Reason | null {
  const problem = propertyNameProblem(name);
  return problem === null || path === '' ? problem : { ...problem, column: `${path}.${problem.column}` };
}

function valueProblem(value: unknown, depth: number, path: string): Reason | null {
  if (typeof value === 'string') return textProblem(value, path);
  if (typeof value !== 'object' || value === null) return null;
  if (depth > MAX_DEPTH) return tooDeep(path.split('.').slice(0, 4).join('.'));
  for (const [name, item] of Object.entries(value)) {
    const within = Array.isArray(value) ? path : `${path}.${name}`;
    const problem =
      (name === '' || Array.isArray(value) ? null : nameProblem(name, path)) ??
      valueProblem(item, depth + 1, within);
    if (problem !== null) return problem;
  }
  return null;
}

function textProblem(value: string, path: string): Reason | null {
  const number = markedNumber(value);
  if (number !== null) {
    if (numberInRange(number)) return null;
    return {
      code: 'number_out_of_range',
      message: `${number.slice(0, 40)} is beyond what can be stored`,
      column: path,
    };
  }
  if (value.includes('\0')) return { code: 'nul_character', message: 'the text holds U+0000', column: path };
  if (!value.isWellFormed()) {
    return { code: 'lone_surrogate', message: 'the text holds half a surrogate pair', column: path };
  }
  return null;
}

function sizeProblem(value: unknown, name: string, path: string, parsed: ParsedJson): Reason | null {
  const text = typeof value === 'string' ? (markedNumber(value) ?? value) : writeJson(value, parsed.marked);
  const bytes = Buffer.byteLength(text);
  if (bytes <= MAX_VALUE_BYTES) return null;
  return {
    code: 'value_too_large',
    message: `the value has ${bytes} bytes; at most ${MAX_VALUE_BYTES} are allowed`,
    column: path === '' ? name : `${path}.${name}`,
  };
}
