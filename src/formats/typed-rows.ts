import { isUtf8 } from 'node:buffer';
import { DamagedFile } from '../domain/errors.ts';
import { dayText, instantText, type PerSecond, timeOfDayText } from '../domain/instant.ts';
import { MAX_TYPED_ROW_CHARS, MAX_TYPED_ROW_VALUES, READ_BYTES } from '../domain/limits.ts';
import { encodeUtf8 } from './utf8.ts';

/*
 * Rows of Parquet, as the NDJSON that they are stored as. A value becomes JSON text at once:
 * no object is made of it, so a row takes no more memory than its text, which has a bound. A column that is null says nothing of
 * its property and is left out; within a value null stays null. A column `metadata` that holds a JSON object as text, as our
 * exports write it, is that object.
 */

/** The JSON text of a value; `null` for a missing one. */
export type JsonText = string;

/** Writes rows of the same columns, and counts what each of them holds. */
export class TypedRows {
  readonly #names: readonly string[];
  readonly #keys: readonly string[];
  #row = 0;
  #column = 0;
  #values = 0;
  #chars = 0;
  #omitted = 0;
  #firstOmitted = '';

  constructor(names: readonly string[]) {
    this.#names = names;
    this.#keys = names.map((name) => `${JSON.stringify(name)}:`);
  }

  /** Returns a line of NDJSON; `textAt` returns the text of a column. */
  line(textAt: (column: number) => JsonText): string {
    this.#row++;
    this.#values = MAX_TYPED_ROW_VALUES;
    this.#chars = MAX_TYPED_ROW_CHARS;
    let row = '';
    for (this.#column = 0; this.#column < this.#keys.length; this.#column++) {
      const json = textAt(this.#column);
      if (json === 'null') continue;
      const key = this.#keys[this.#column] ?? '';
      row += row === '' ? key + json : `,${key}${json}`;
    }
    return `{${row}}\n`;
  }

  /**
   * Counts a value of the row, or a part of one, before it is kept.
   * @throws DamagedFile for a row that has more than any record may have.
   */
  count(text: JsonText): JsonText {
    this.#values--;
    this.#chars -= text.length;
    if (this.#values < 0) throw this.#tooLarge(`more than ${MAX_TYPED_ROW_VALUES} values`);
    if (this.#chars < 0) throw this.#tooLarge(`more than ${MAX_TYPED_ROW_CHARS} characters`);
    return text;
  }

  /** Counts a value that is left out because JSON has no form for it. */
  omit(): JsonText {
    if (this.#omitted++ === 0) this.#firstOmitted = this.#where();
    return 'null';
  }

  notes(): string[] {
    if (this.#omitted === 0) return [];
    const what = this.#omitted === 1 ? '1 value was' : `${this.#omitted} values were`;
    return [
      `${what} left out that JSON cannot hold (NaN, an infinity, a time beyond 24 hours), the first in ${this.#firstOmitted}.`,
    ];
  }

  #tooLarge(what: string): DamagedFile {
    return new DamagedFile(`${this.#where()} brings the row to ${what}, which no record may have`);
  }

  #where(): string {
    return `row ${this.#row}, column ${JSON.stringify((this.#names[this.#column] ?? '').slice(0, SHOWN_NAME_CHARS))}`;
  }
}

const SHOWN_NAME_CHARS = 100;

export class LineBatch {
  #lines: string[] = [];
  #chars = 0;

  /** Adds a line; returns all lines once they fill a block. */
  add(line: string): Buffer | null {
    this.#lines.push(line);
    this.#chars += line.length;
    return this.#chars < READ_BYTES ? null : this.take();
  }

  take(): Buffer | null {
    if (this.#lines.length === 0) return null;
    const text = encodeUtf8(this.#lines.join(''), noCharacter);
    this.#lines = [];
    this.#chars = 0;
    return text;
  }
}

/** Half a surrogate pair, which stands for bytes that are no character. `JSON.stringify` never leaves one in a text. */
const NO_CHARACTER = '\ud800';
const noCharacter = /\ud800/u;

/** Writes bytes that are declared as text. */
export function textJson(bytes: Uint8Array): JsonText {
  const json = JSON.stringify(asBuffer(bytes).toString('utf8'));
  return json.includes('\ufffd') && !isUtf8(bytes) ? json.replaceAll('\ufffd', NO_CHARACTER) : json;
}

/** Writes undeclared bytes: as text if that can be stored, else as Base64. */
export function bytesJson(bytes: Uint8Array): JsonText {
  return JSON.stringify(asBuffer(bytes).toString(isText(bytes) ? 'utf8' : 'base64'));
}

/** Writes text of a column `metadata`: a JSON object as it is, on one line, anything else as a JSON string. */
export function metadataJson(bytes: Uint8Array): JsonText {
  return declaredJson(bytes, '{');
}

/** Writes text that is declared as JSON, on one line; as a string if it is not, or starts with something else. */
export function declaredJson(bytes: Uint8Array, start = ''): JsonText {
  if (!isUtf8(bytes)) return textJson(bytes);
  const text = asBuffer(bytes).toString('utf8');
  // Within JSON a line break is white space between its parts.
  return text.startsWith(start) && isJson(text) ? text.replace(/[\r\n]/g, ' ') : JSON.stringify(text);
}

export function isText(bytes: Uint8Array): boolean {
  return isUtf8(bytes) && !bytes.includes(0);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const units: Readonly<Record<string, PerSecond>> = { millis: 1_000, micros: 1_000_000, nanos: 1_000_000_000 };
const typeOfTime = /^(timestamp|time)-(millis|micros|nanos)$/;
/** Days have 32 bits. */
const MAX_DAYS = 2 ** 31;

/**
 * Returns the function that writes the numbers of a type of days, instants or times of day, such as `date` or `timestamp-micros`;
 * null for any other type.
 */
export function temporalJson(type: string, rows: TypedRows): ((value: number | bigint) => JsonText) | null {
  if (type === 'date') {
    return (value) => {
      if (Math.abs(Number(value)) > MAX_DAYS) throw new DamagedFile('a date is out of range');
      return `"${dayText(Number(value))}"`;
    };
  }
  const [, kind, name = ''] = typeOfTime.exec(type) ?? [];
  const unit = units[name];
  if (unit === undefined) return null;
  if (kind === 'timestamp') return (value) => `"${instantText(value, unit)}"`;
  return (value) => {
    const text = timeOfDayText(value, unit);
    return text === null ? rows.omit() : `"${text}"`;
  };
}

export function numberJson(value: number, rows: TypedRows): JsonText {
  return Number.isFinite(value) ? String(value) : rows.omit();
}

/** Returns the decimal number with the digits `unscaled`: 1999 with the scale 2 is 19.99. */
export function decimalJson(unscaled: bigint, scale: number): JsonText {
  const digits = (unscaled < 0n ? -unscaled : unscaled).toString().padStart(scale + 1, '0');
  const sign = unscaled < 0n ? '-' : '';
  const whole = digits.slice(0, digits.length - scale);
  return scale === 0 ? sign + digits : `${sign}${whole}.${digits.slice(-scale)}`;
}

/** The largest scale; no number that can be loaded has more digits behind the point. */
const MAX_SCALE = 1_000;

/** @throws DamagedFile for an invalid scale. */
export function checkScale(scale: unknown): number {
  if (typeof scale === 'number' && Number.isInteger(scale) && scale >= 0 && scale <= MAX_SCALE) return scale;
  throw new DamagedFile('a decimal has no usable scale');
}

/** Reads two's complement, the highest byte first. */
export function bigIntOf(bytes: Uint8Array): bigint {
  const hex = asBuffer(bytes).toString('hex');
  return hex === '' ? 0n : BigInt.asIntN(8 * bytes.length, BigInt(`0x${hex}`));
}

export const UUID_BYTES = 16;

export function uuidJson(bytes: Uint8Array): JsonText {
  return `"${asBuffer(bytes)
    .toString('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')}"`;
}

export const INTERVAL_BYTES = 12;

/** Returns an interval of months, days and milliseconds, four bytes each, as a duration of ISO 8601: `P1M2DT3.5S`. */
export function intervalJson(bytes: Uint8Array): JsonText {
  const buffer = asBuffer(bytes);
  const [months, days, ms] = [buffer.readUInt32LE(0), buffer.readUInt32LE(4), buffer.readUInt32LE(8)];
  const date = `${months > 0 ? `${months}M` : ''}${days > 0 ? `${days}D` : ''}`;
  return ms > 0 || date === '' ? `"P${date}T${ms / 1000}S"` : `"P${date}"`;
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
