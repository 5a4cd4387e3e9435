import { getManyValues, isMany, type Many, none } from 'stream-chain/defs.js';
import { jsonParser, type parser } from 'stream-json/core/parser.js';
import { MAX_DEPTH, MAX_NUMBER_EXPONENT, MAX_PARSED_DEPTH, MAX_VALUE_BYTES } from '../base/limits.ts';
import { shorten } from '../base/wording.ts';
import { propertyNameProblem, type Reason } from '../domain/reject.ts';
import { isNestedDeeper } from './json-position.ts';

const MAX_NUMBER_CHARS = 20_000;
export const MAX_RECORD_PROPERTIES = 10_000;

/**
 * JSON that was parsed without losing digits. Records with numbers that JavaScript would change are
 * parsed by stream-json, whose tokens contain the source text. Each such number becomes a marked
 * string. The mark is removed on output.
 */
export interface ParsedJson {
  readonly value: unknown;
  /** True if the value may contain marked numbers. */
  readonly marked: boolean;
}

/**
 * Pattern of numbers that JavaScript may change: 16 digits or more, exponents, trailing zeros. A
 * match inside a string does no harm, but costs time.
 */
const inexact = /(?:^|[:,[\s])-?(?:[\d.]{16,}|[\d.]+[eE]|0\.0{6}|\d+\.\d*0(?!\d)|(?<=-)0(?![\d.]))/;
/**
 * Prefix that marks a number. It is random for each process, so that callers cannot send a string
 * that begins with it.
 */
const mark = `\u0001${Math.random().toString(36).slice(2)}${Math.random().toString(36).slice(2)}#`;
const markedString = new RegExp(`"\\\\u0001${mark.slice(1)}([^"]*)"`, 'g');

export function parseJsonText(text: string): ParsedJson | Reason {
  if (isNestedDeeper(text, MAX_PARSED_DEPTH)) return tooDeep(null);
  try {
    const value: unknown = JSON.parse(text);
    if (!inexact.test(text)) return { value, marked: false };
    return { value: parseExactly(text), marked: true };
  } catch (error) {
    return { code: 'invalid_json', message: describe(error), column: null };
  }
}

/**
 * Parses a JSON object. Returns `null` if the text is not an object or is nested too deep to be
 * loaded.
 */
export function parseObject(line: string): JsonObject | null {
  if (isNestedDeeper(line, MAX_PARSED_DEPTH)) return null;
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/**
 * Returns the reason for refusing a value that is nested too deep. `column` is the name of its
 * column, if known.
 */
function tooDeep(column: string | null): Reason {
  return {
    code: 'too_deep',
    message: `${column ?? 'The record'} is nested deeper than ${MAX_DEPTH} levels`,
    column,
  };
}

/**
 * Replaces JSON text in each member whose name is in `names` with the parsed JSON, without losing
 * digits. Invalid JSON remains text.
 */
export function withoutTexts({ value, marked }: ParsedJson, names: ReadonlySet<string>): ParsedJson {
  const original = { value, marked };
  if (!isObject(value) || !hasTexts(value, names)) return original;
  const members = Object.entries(value).map(([name, member]) => {
    const inner = names.has(name) && isJsonText(member) ? parseJsonText(member) : null;
    const text = inner === null || 'code' in inner ? writeJson(member, marked) : String(member);
    return `${JSON.stringify(name)}:${text}`;
  });
  const parsed = parseJsonText(`{${members.join(',')}}`);
  return 'code' in parsed ? original : parsed;
}

/** Looks each member up in `names`. The other way round, 18 look-ups took 2.5 µs per record. */
function hasTexts(value: JsonObject, names: ReadonlySet<string>): boolean {
  for (const name in value) if (names.has(name) && isJsonText(value[name])) return true;
  return false;
}

function isJsonText(member: unknown): member is string {
  return typeof member === 'string' && /^\s*[{[]/.test(member);
}

type Container = unknown[] | Record<string, unknown>;

/**
 * Parses valid JSON text. Objects have no prototype, so keys such as `__proto__` are ordinary keys.
 */
function parseExactly(text: string): unknown {
  const containers: Container[] = [];
  const keys: string[] = [];
  let root: unknown;
  const put = (value: unknown): void => {
    const container = containers.at(-1);
    if (container === undefined) root = value;
    else if (Array.isArray(container)) container.push(value);
    else container[keys.at(-1) ?? ''] = value;
  };
  const open = (container: Container): void => {
    put(container);
    containers.push(container);
    keys.push('');
  };
  for (const token of tokensOf(text)) {
    if (token.name === 'startObject') open(Object.create(null) as Record<string, unknown>);
    else if (token.name === 'startArray') open([]);
    else if (token.name === 'endObject' || token.name === 'endArray') {
      containers.pop();
      keys.pop();
    } else if (token.name === 'keyValue') keys[keys.length - 1] = token.value;
    else if (token.name === 'numberValue') put(markNumber(token.value));
    else if ('value' in token) put(token.value);
  }
  return root;
}

function* tokensOf(text: string): Generator<parser.Token> {
  const tokenize = jsonParser({ packValues: true, streamValues: false }) as unknown as (
    input: string | typeof none,
  ) => unknown;
  for (const output of [tokenize(text), tokenize(none)]) {
    if (isMany(output)) yield* getManyValues(output as Many<parser.Token>);
  }
}

export function writeJson(value: unknown, marked: boolean): string {
  const text = JSON.stringify(value);
  return marked ? text.replace(markedString, '$1') : text;
}

export function markedNumber(value: unknown): string | null {
  return typeof value === 'string' && value.startsWith(mark) ? value.slice(mark.length) : null;
}

/** Returns the text of a number with all its digits, or `null` for any other value. */
export function numberText(value: unknown): string | null {
  if (typeof value === 'number') return String(value);
  const text = markedNumber(value);
  return text === null ? null : plainNumber(text);
}

/**
 * Returns the text of an id, which is a string or a whole number, or `null` for any other value.
 */
export function idText(value: unknown): string | null {
  const number = numberText(value);
  if (number !== null) return wholeNumber.test(number) ? number : null;
  return typeof value === 'string' ? value : null;
}

export const wholeNumber = /^-?\d+$/;

/**
 * Returns the number, or its marked text if JavaScript would change the number. Use this only for
 * records that are `marked`.
 */
export function markNumber(text: string): string | number {
  return String(Number(text)) === text ? Number(text) : mark + text;
}

export function plainNumber(text: string): string {
  const isKept = !/[eE]/.test(text) && text.replace(/^-?0*\.?0*|[-.]/g, '').length <= KEPT_DIGITS;
  return isKept && text.length <= 300 ? String(Number(text)) : text;
}

/** Number of decimal digits that a JavaScript number always preserves. */
const KEPT_DIGITS = 15;

/**
 * Returns true if jsonb can store the number. jsonb limits the exponent, and the length of the
 * number when it is written without an exponent.
 */
export function numberInRange(number: string): boolean {
  const exponent = Math.abs(Number(/[eE]([+-]?\d+)$/.exec(number)?.[1] ?? 0));
  return exponent <= MAX_NUMBER_EXPONENT && number.length + exponent <= MAX_NUMBER_CHARS;
}

function describe(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  // The message of the JavaScript engine is truncated, because it may quote much of the input. The
  // raw record is shown next to it anyway.
  return `The text is not valid JSON: ${shorten(message, 120)}`.replaceAll('\0', '␀');
}

/**
 * Byte strings (latin1) have one character per byte. They avoid decoding text that is only copied.
 */
export function toByteString(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

export function fromByteString(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

const copySpecial = /[\\\t\n\r\b\f\v]/;
const copySpecials = /[\\\t\n\r\b\f\v]/g;
const copyLetters: Readonly<Record<string, string>> = {
  '\\': '\\',
  t: '\t',
  n: '\n',
  r: '\r',
  b: '\b',
  f: '\f',
  v: '\v',
};
const copyEscapes = Object.fromEntries(
  Object.entries(copyLetters).map(([letter, character]) => [character, `\\${letter}`]),
);

/** Escapes text for COPY's text format (PostgreSQL documentation, COPY, "Text Format"). */
export function escapeCopy(text: string): string {
  return copySpecial.test(text)
    ? text.replace(copySpecials, (character) => copyEscapes[character] ?? character)
    : text;
}

/** Escapes JSON for COPY. JSON contains no raw control characters, so only backslashes matter. */
export function escapeCopyJson(json: string): string {
  return json.includes('\\') ? json.replaceAll('\\', '\\\\') : json;
}

export function unescapeCopy(text: string): string {
  return text.replace(/\\(.)/gs, (_, letter: string) => copyLetters[letter] ?? letter);
}

export function copyCells(line: Buffer): (string | null)[] {
  const cells = line.toString('utf8').replace(/\n$/, '').split('\t');
  return cells.map((cell) => (cell === '\\N' ? null : unescapeCopy(cell)));
}

export type JsonObject = Record<string, unknown>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns true for `{}`, and for `[]`, because PHP writes an empty object as `[]`. */
export function isEmptyObject(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (!isObject(value)) return false;
  for (const _ in value) return false;
  return true;
}

/** Length of the shortest property, `,"a":1`. */
const leastPropertyBytes = 6;

/**
 * Returns true if the object has more properties than a record may have. Call this before a loop
 * over the properties. If the source has too few bytes for that many properties, they are not even
 * counted.
 */
export function hasTooManyProperties(object: JsonObject, sourceBytes: number): boolean {
  if (sourceBytes < MAX_RECORD_PROPERTIES * leastPropertyBytes) return false;
  return Object.keys(object).length > MAX_RECORD_PROPERTIES;
}

export function tooManyProperties(path: string): Reason {
  return {
    code: 'record_too_large',
    message: `The record has more than ${MAX_RECORD_PROPERTIES} properties`,
    column: path === '' ? null : path,
  };
}

/**
 * Returns the problem of a property, or `null` if there is none. `mayBeLarge` is true if the source
 * text is long enough to contain a value that is too large.
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
      message: `${path} is a number beyond the stored range`,
      column: path,
    };
  }
  if (value.includes('\0')) return { code: 'nul_character', message: `${path} holds U+0000`, column: path };
  if (!value.isWellFormed()) {
    return { code: 'lone_surrogate', message: `${path} holds half a surrogate pair`, column: path };
  }
  return null;
}

function sizeProblem(value: unknown, name: string, path: string, parsed: ParsedJson): Reason | null {
  const text = typeof value === 'string' ? (markedNumber(value) ?? value) : writeJson(value, parsed.marked);
  const bytes = Buffer.byteLength(text);
  if (bytes <= MAX_VALUE_BYTES) return null;
  const column = path === '' ? name : `${path}.${name}`;
  const message = `${column} has ${bytes} bytes; at most ${MAX_VALUE_BYTES} are allowed`;
  return { code: 'value_too_large', message, column };
}
