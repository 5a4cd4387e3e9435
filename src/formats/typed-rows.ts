import { isUtf8 } from 'node:buffer';
import { MAX_PARSED_DEPTH, READ_BYTES } from '../domain/limits.ts';

/*
 * Rows of formats that have types, Parquet and Avro, as the NDJSON that they are stored as. Numbers keep their digits and
 * instants are ISO 8601 in UTC. A column that is null says nothing of its property and is left out; within a value null
 * stays null. A column `metadata` that holds a JSON object as text, as our exports write it, is that object.
 */

export type TypedValue =
  | null
  | undefined
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | JsonText
  | readonly TypedValue[]
  | { readonly [name: string]: TypedValue };

/** Text that says of itself that it is JSON. */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Writes rows of the same columns. */
export class TypedRows {
  readonly #keys: readonly string[];
  readonly #metadata: number;

  constructor(names: readonly string[]) {
    this.#keys = names.map((name) => `${JSON.stringify(name)}:`);
    this.#metadata = names.indexOf('metadata');
  }

  /** A line of NDJSON; `valueAt` says what stands in each column. */
  line(valueAt: (column: number) => TypedValue): string {
    let row = '';
    for (let column = 0; column < this.#keys.length; column++) {
      const value = valueAt(column);
      const json = column === this.#metadata && typeof value === 'string' ? objectOf(value) : jsonOf(value);
      if (json === 'null') continue;
      row += row === '' ? `${this.#keys[column]}${json}` : `,${this.#keys[column]}${json}`;
    }
    return `{${row}}\n`;
  }
}

/** The text itself if it is a JSON object, else a JSON string of it. */
function objectOf(text: string): string {
  return text.startsWith('{') && isJson(text) ? onOneLine(text) : JSON.stringify(text);
}

function jsonOf(value: TypedValue, depth = 0): string {
  if (depth > MAX_PARSED_DEPTH) throw new RangeError('values are nested too deeply');
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value);
    case 'number':
      // NaN and the infinities have no place in JSON.
      return Number.isFinite(value) ? String(value) : 'null';
    case 'bigint':
    case 'boolean':
      return String(value);
    case 'object':
      return objectJson(value, depth);
    default:
      return 'null';
  }
}

function objectJson(value: Extract<TypedValue, object> | null, depth: number): string {
  if (value === null) return 'null';
  if (value instanceof JsonText)
    return isJson(value.text) ? onOneLine(value.text) : JSON.stringify(value.text);
  if (value instanceof Uint8Array) return bytesJson(value);
  if (isList(value)) return `[${value.map((item) => jsonOf(item, depth + 1)).join(',')}]`;
  const members = Object.entries(value).map(
    ([name, member]) => `${JSON.stringify(name)}:${jsonOf(member, depth + 1)}`,
  );
  return `{${members.join(',')}}`;
}

function isList(value: object): value is readonly TypedValue[] {
  return Array.isArray(value);
}

/** Gathers lines into buffers worth working on. */
export class LineBatch {
  #lines: string[] = [];
  #chars = 0;

  /** Adds a line; what there is by now, if that is enough. */
  add(line: string): Buffer | null {
    this.#lines.push(line);
    this.#chars += line.length;
    return this.#chars < READ_BYTES ? null : this.take();
  }

  /** What is left; null if nothing is. */
  take(): Buffer | null {
    if (this.#lines.length === 0) return null;
    const text = Buffer.from(this.#lines.join(''));
    this.#lines = [];
    this.#chars = 0;
    return text;
  }
}

/** Text where it is text, else Base64. */
function bytesJson(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return JSON.stringify(buffer.toString(isUtf8(buffer) ? 'utf8' : 'base64'));
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Within JSON a line break is white space between its parts. */
function onOneLine(json: string): string {
  return json.replace(/[\r\n]/g, ' ');
}

/** A decimal number of which `unscaled` are the digits: 1999 and 2 are 19.99. */
export function decimalOf(unscaled: bigint, scale: number): JsonText {
  const digits = (unscaled < 0n ? -unscaled : unscaled).toString().padStart(scale + 1, '0');
  const sign = unscaled < 0n ? '-' : '';
  const whole = digits.slice(0, digits.length - scale);
  return new JsonText(scale === 0 ? sign + digits : `${sign}${whole}.${digits.slice(-scale)}`);
}

/** Two's complement, the highest byte first. */
export function bigIntOf(bytes: Uint8Array): bigint {
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
  return hex === '' ? 0n : BigInt.asIntN(8 * bytes.length, BigInt(`0x${hex}`));
}
