import { isUtf8 } from 'node:buffer';
import { InputError, inputError, type Problem } from '../base/errors.ts';
import { MAX_DEPTH, MAX_ID_BYTES, MAX_VALUE_BYTES } from '../base/limits.ts';
import type { Reason } from '../domain/reject.ts';
import {
  hasTooManyProperties,
  idText,
  isEmptyObject,
  isObject,
  type JsonObject,
  markedNumber,
  numberText,
  type ParsedJson,
  parseJsonText,
  propertyProblem,
  tooManyProperties,
} from '../formats/json-text.ts';
import type { Properties } from './records.ts';

const byteOrderMark = '\ufeff';

/** @throws InputError `invalid_json`, `invalid_field` */
export function openRecord(body: Buffer, what = 'The body'): Fields {
  if (body.length === 0) throw inputError('invalid_json', 'The request has no body');
  if (!isUtf8(body)) throw inputError('invalid_json', `${what} is not valid UTF-8`);
  const text = body.toString('utf8');
  const parsed = parseJsonText(text.startsWith(byteOrderMark) ? text.slice(1) : text);
  if ('code' in parsed) throw unreadable(parsed, what);
  return new Fields(parsed, body.length, what);
}

function unreadable({ code, message }: Reason, what: string): Error {
  if (code === 'too_deep')
    return inputError('invalid_metadata_value', `${what} is nested deeper than ${MAX_DEPTH} levels`);
  return inputError('invalid_json', `${what} is not JSON`, message);
}

export class Fields {
  readonly #parsed: ParsedJson;
  readonly #problems: Problem[] = [];
  /** Number of properties that were dropped because their name is empty. */
  dropped = 0;
  /**
   * Members of the record. The caller may remove some members before it reads the other members.
   */
  object: JsonObject;
  readonly bytes: number;

  get marked(): boolean {
    return this.#parsed.marked;
  }

  /**
   * `what` names the record in error messages. @throws InputError if the record is not an object
   */
  constructor(parsed: ParsedJson, bytes: number, what: string) {
    this.#parsed = parsed;
    this.bytes = bytes;
    if (!isObject(parsed.value)) {
      throw inputError('invalid_field', `${what} must be a JSON object`, `got ${kindOf(parsed.value)}`);
    }
    this.object = parsed.value;
  }

  refuse(code: Problem['code'], message: string, details: string): void {
    this.#problems.push({ code, message, details });
  }

  /** Reads a string of 1 to `maxBytes` bytes. `null` if it is missing. */
  text(value: unknown, path: string, maxBytes = MAX_ID_BYTES): string | null {
    if (value === undefined || value === null) return null;
    if (typeof value !== 'string' || markedNumber(value) !== null) {
      this.refuse(
        'invalid_field',
        `${path} must be a string`,
        `${path}: expected a string, got ${kindOf(value)}`,
      );
      return null;
    }
    const problem = textProblem(value, maxBytes);
    if (problem !== null) this.refuse('invalid_field', `${path} ${problem}`, path);
    return value;
  }

  /**
   * Reads a required string. If it is missing, records a problem and returns ''. For `others`, see
   * `requiredId`.
   */
  requiredText(value: unknown, path: string, maxBytes: number, others: readonly string[]): string {
    if (value === undefined || value === null) this.#refuseMissing(path, others);
    return this.#notBlank(this.text(value, path, maxBytes) ?? '', path);
  }

  /** Reads a string, or a whole number with its original digits. `null` if it is missing. */
  id(value: unknown, path: string): string | null {
    const id = idText(value);
    if (id === null && value !== undefined && value !== null) {
      const details = `${path}: expected a string or a whole number, got ${numberText(value) ?? kindOf(value)}`;
      this.refuse('invalid_field', `${path} must be a string or a whole number`, details);
      return null;
    }
    const text = this.text(id, path);
    return text === null ? null : this.#notBlank(text, path);
  }

  /**
   * Reads a required id. If it is missing, records a problem and returns ''. `others` are names
   * that other services use for this field.
   */
  requiredId(value: unknown, path: string, others: readonly string[]): string {
    if (value === undefined || value === null) this.#refuseMissing(path, others);
    return this.id(value, path) ?? '';
  }

  #notBlank(text: string, path: string): string {
    if (text !== '' && text.trim() === '') this.refuse('invalid_field', `${path} is blank`, path);
    return text;
  }

  /** Reads an id with several names. The values must be equal. `null` if all are missing. */
  agreedId(candidates: readonly (readonly [path: string, value: unknown])[]): string | null {
    const ids = candidates
      .filter(([, value]) => value !== undefined && value !== null)
      .map(([path, value]) => ({ path, id: this.id(value, path) }));
    const first = ids[0];
    const other = ids.find(({ id }) => id !== null && first?.id != null && id !== first.id);
    if (first !== undefined && other !== undefined) {
      const names = `${first.path} and ${other.path}`;
      this.refuse('invalid_field', `${names} are different ids; give one, or the same`, names);
    }
    return first?.id ?? null;
  }

  /** Reads an object. Returns `null` if the value is missing, null or an empty object. */
  objectOf(value: unknown, path: string): JsonObject | null {
    if (value === undefined || value === null || isEmptyObject(value)) return null;
    if (isObject(value)) return value;
    this.refuse(
      'invalid_field',
      `${path} must be an object`,
      `${path}: expected an object, got ${kindOf(value)}`,
    );
    return null;
  }

  properties(object: JsonObject, path: string): Properties {
    if (hasTooManyProperties(object, this.bytes)) {
      this.refuse('invalid_metadata_value', tooManyProperties(path).message, path);
      return object;
    }
    for (const name in object) {
      const value = object[name];
      if (value === undefined) continue;
      if (name === '') {
        delete object[name];
        this.dropped++;
        continue;
      }
      const reason = propertyProblem(name, value, this.#parsed, path, this.bytes > MAX_VALUE_BYTES);
      if (reason !== null) {
        this.refuse('invalid_metadata_value', reason.message, reason.column ?? path);
      }
    }
    return object;
  }

  /** @throws InputError with all problems, if any */
  check(): void {
    const [first, ...more] = this.#problems;
    if (first !== undefined) throw new InputError(first, ...more.slice(0, maxProblems - 1));
  }

  #refuseMissing(path: string, others: readonly string[]): void {
    const otherName = others.find((name) => this.object[name] !== undefined && this.object[name] !== null);
    const hint = otherName === undefined ? '' : `; there is ${otherName}: send it as ${path}`;
    this.refuse('missing_field', `${path} is missing${hint}`, path);
  }
}

const maxProblems = 100;

function textProblem(text: string, maxBytes: number): string | null {
  if (text === '') return 'is empty';
  // A UTF-16 code unit takes at most three bytes in UTF-8.
  if (text.length * 3 > maxBytes) {
    const bytes = Buffer.byteLength(text);
    if (bytes > maxBytes) return `has ${bytes} bytes; at most ${maxBytes} are allowed`;
  }
  if (text.includes('\0')) return 'holds U+0000';
  return text.isWellFormed() ? null : 'holds half a surrogate pair';
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (markedNumber(value) !== null) return 'number';
  return Array.isArray(value) ? 'array' : typeof value;
}
