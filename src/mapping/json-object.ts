import {
  MAX_DEPTH,
  MAX_PROPERTY_NAME_CHARS,
  MAX_RECORD_PROPERTIES,
  MAX_VALUE_BYTES,
} from '../domain/limits.ts';
import type { Reason } from '../domain/reject.ts';
import { propertyNameProblem } from './column-plan.ts';
import {
  fromByteString,
  markedNumber,
  numberInRange,
  type ParsedJson,
  parseJson,
  toByteString,
  tooDeep,
  writeJson,
} from './json-text.ts';
import type { PropertyTypes } from './property-types.ts';
import { NESTED, REMOVES } from './row-buffer.ts';

export type JsonObject = Record<string, unknown>;

/** The inside of a JSON object as a byte string (not escaped for COPY). */
export interface JsonContent {
  readonly text: string;
  /** REMOVES if a property is null, NESTED if one is an object or an array. */
  readonly flags: number;
}

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

/** Reads a cell that holds a JSON object (a byte string); `path` names it in reasons, `types` collects the types of its members. */
export function readJsonObject(bytes: string, path: string, types: PropertyTypes): JsonContent | Reason {
  const parsed = parseJson(bytes);
  if ('code' in parsed) return { ...parsed, column: path };
  if (!isObject(parsed.value)) {
    return { code: 'invalid_type', message: `${path} must be a JSON object`, column: path };
  }
  return writeProperties(parsed.value, parsed, bytes.length, path, types);
}

/**
 * Checks the properties of an object, adds them to `types` and writes them; members that are undefined are left out.
 * `sourceBytes`, the length of the text it came from, spares looking at sizes where none can be too large;
 * `source`, the object as it stands in the record, spares writing it.
 */
export function writeProperties(
  object: JsonObject,
  parsed: ParsedJson,
  sourceBytes: number,
  path: string,
  types: PropertyTypes,
  source: string | null = null,
): JsonContent | Reason {
  let flags = 0;
  let isEmpty = true;
  if (hasTooManyProperties(object, sourceBytes)) return tooManyProperties(path);
  // Plain text and numbers that the parser accepts are always allowed.
  const allPlain = !parsed.decoded && !parsed.marked;
  const members = types.membersOf(parsed);
  for (const name in object) {
    const value = object[name];
    if (value === undefined) continue;
    isEmpty = false;
    const isPlain = allPlain && typeof value !== 'object';
    const problem =
      nameProblem(name, path, parsed) ??
      (isPlain ? null : valueProblem(value, parsed, 2, `${path}${path === '' ? '' : '.'}${name}`));
    if (problem !== null) return readable(problem, parsed);
    members.note(name, value, parsed.marked);
    if (value === null) flags |= REMOVES;
    else if (typeof value === 'object') flags |= NESTED;
    if (sourceBytes > MAX_VALUE_BYTES) {
      const large = sizeProblem(value, name, path, parsed);
      if (large !== null) return readable(large, parsed);
    }
  }
  if (isEmpty) return { text: '', flags };
  if (source !== null) return { text: source.slice(1, -1), flags };
  const text = writeJson(object, parsed.marked).slice(1, -1);
  return { text: parsed.decoded ? toByteString(text) : text, flags };
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
    nameProblem(name, path, parsed) ??
    valueProblem(value, parsed, 2, path === '' ? name : `${path}.${name}`) ??
    (mayBeLarge ? sizeProblem(value, name, path, parsed) : null)
  );
}

/** Returns where the column is a byte string, as all of it then is, it becomes text. */
function readable(reason: Reason, { decoded }: ParsedJson): Reason {
  return decoded || reason.column === null ? reason : { ...reason, column: fromByteString(reason.column) };
}

function nameProblem(name: string, path: string, { decoded }: ParsedJson): Reason | null {
  // The length of a byte string is an upper bound of its characters.
  const counted = decoded || name.length <= MAX_PROPERTY_NAME_CHARS ? name : fromByteString(name);
  const problem = propertyNameProblem(counted);
  if (problem === null) return null;
  const column = counted === name ? (problem.column ?? '') : toByteString(problem.column ?? '');
  return { ...problem, column: path === '' ? column : `${path}.${column}` };
}

function valueProblem(value: unknown, parsed: ParsedJson, depth: number, path: string): Reason | null {
  if (typeof value === 'string') return parsed.decoded || parsed.marked ? textProblem(value, path) : null;
  if (typeof value !== 'object' || value === null) return null;
  if (depth > MAX_DEPTH) {
    return tooDeep(path.split('.').slice(0, 4).join('.'));
  }
  if (Array.isArray(value)) {
    for (const item of value) {
      const problem = valueProblem(item, parsed, depth + 1, path);
      if (problem !== null) return problem;
    }
    return null;
  }
  for (const [name, item] of Object.entries(value)) {
    const problem =
      (name === '' ? null : nameProblem(name, path, parsed)) ??
      valueProblem(item, parsed, depth + 1, `${path}.${name}`);
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
  // A byte string has a character for every byte.
  const bytes = parsed.decoded ? Buffer.byteLength(text) : text.length;
  if (bytes <= MAX_VALUE_BYTES) return null;
  return {
    code: 'value_too_large',
    message: `the value has ${bytes} bytes; at most ${MAX_VALUE_BYTES} are allowed`,
    column: path === '' ? name : `${path}.${name}`,
  };
}
