import { instantOfMicros } from '../../base/instant.ts';
import type { Column } from '../../domain/export.ts';

export const separator = '\u0002';
const SEPARATOR = separator.charCodeAt(0);
const [LF, QUOTE, BACKSLASH, MINUS, ZERO] = [0x0a, 0x22, 0x5c, 0x2d, 0x30];

/**
 * All times have the length of this one, so the times at the end of a profile row can be cut off
 * without parsing the row.
 */
const sampleTime = '2026-01-01T00:00:00.000000Z';

/** Where rows of a text format end, and which bytes of them the content hash omits. */
export interface RowText {
  /** Finds the row ends in consecutive pieces of a file. */
  findEnds(): (piece: Buffer) => number[];
  /** Number of bytes that the times at the end of a profile row take. */
  readonly profileTail: number;
  /** Number of bytes that the names of these times take in the header. */
  readonly profileHeaderTail: number;
}

export const ndjsonText: RowText = {
  findEnds: () => lineEnds,
  profileTail: `,"first_seen_at":"${sampleTime}","last_seen_at":"${sampleTime}"}\n`.length,
  profileHeaderTail: 0,
};

export const csvText: RowText = {
  findEnds: csvEnds,
  profileTail: `,${sampleTime},${sampleTime}\n`.length,
  profileHeaderTail: ',first_seen_at,last_seen_at\n'.length,
};

/** A block of complete rows, including their line breaks. */
export interface RowBlock {
  readonly bytes: Buffer;
  /** The last end equals the length of `bytes`. */
  readonly ends: readonly number[];
}

export class Gathered {
  readonly ends: number[] = [];
  length = 0;
  readonly #pieces: Buffer[] = [];

  add(piece: Buffer): void {
    this.#pieces.push(piece);
    this.length += piece.length;
  }

  addRow(row: Buffer): void {
    this.add(row);
    this.ends.push(this.length);
  }

  block(): RowBlock {
    return { bytes: Buffer.concat(this.#pieces, this.length), ends: this.ends };
  }
}

/** Splits bytes into blocks of complete rows. `source` is the output of COPY, or a file. */
export async function* rowBlocks<T>(
  source: AsyncIterable<Buffer, T>,
  { findEnds: endsFinder }: RowText,
): AsyncGenerator<RowBlock, T> {
  const findEnds = endsFinder();
  const iterator = source[Symbol.asyncIterator]();
  let rest: Buffer[] = [];
  try {
    for (;;) {
      const next = await iterator.next();
      if (next.done === true) {
        // An incomplete last row is passed on: the row count reveals the error.
        if (rest.length > 0) {
          const bytes = Buffer.concat(rest);
          yield { bytes, ends: [bytes.length] };
        }
        return next.value;
      }
      const piece = next.value;
      const ends = findEnds(piece);
      const last = ends.at(-1);
      if (last === undefined) {
        if (piece.length > 0) rest.push(piece);
        continue;
      }
      const before = rest.reduce((sum, { length }) => sum + length, 0);
      const bytes =
        before === 0 ? piece.subarray(0, last) : Buffer.concat([...rest, piece.subarray(0, last)]);
      rest = last === piece.length ? [] : [piece.subarray(last)];
      yield { bytes, ends: before === 0 ? ends : ends.map((end) => end + before) };
    }
  } finally {
    await iterator.return?.(undefined as T);
  }
}

/** In NDJSON, every line break ends a row. */
function lineEnds(piece: Buffer): number[] {
  const ends: number[] = [];
  for (let at = piece.indexOf(LF); at !== -1; at = piece.indexOf(LF, at + 1)) ends.push(at + 1);
  return ends;
}

/** The first byte of a doubled quote ends a quoted part, and the second starts another. */
function csvEnds(): (piece: Buffer) => number[] {
  let isQuoted = false;
  return (piece) => {
    if (!isQuoted && !piece.includes(QUOTE)) return lineEnds(piece);
    const ends: number[] = [];
    for (let at = 0; at < piece.length; at++) {
      const byte = piece[at];
      if (byte === QUOTE) isQuoted = !isQuoted;
      else if (byte === LF && !isQuoted) ends.push(at + 1);
    }
    return ends;
  };
}

// Reads values as bytes, for the speed of exports. Only values with escapes become strings.
// `selectValues` describes the rows.

/** Minimum number of bytes for which copying with `set` is faster than a loop. */
const longCopy = 256;
const initialBytes = 1024;
const int64Bytes = 8;
/**
 * Integers with fewer digits are exact in JavaScript. Integers with this number of digits are exact
 * unless the first digit is 9.
 */
const exactDigits = 16;
const NINE = 0x39;

/** Sets `ends[i]` to the end of value i. `end` is the position after the row's line break. */
export function findValues(bytes: Uint8Array, start: number, end: number, ends: Int32Array): void {
  const last = ends.length - 1;
  let at = start;
  for (let value = 0; value < last; value++) {
    while (at < end && bytes[at] !== SEPARATOR) at++;
    ends[value] = at++;
  }
  ends[last] = end - 1;
}

export class Bytes {
  memory = Buffer.allocUnsafeSlow(initialBytes);
  length = 0;

  clear(): void {
    this.length = 0;
  }

  /** Returns the bytes without copying them. The result is valid until more bytes are added. */
  view(): Buffer {
    return this.memory.subarray(0, this.length);
  }

  reserve(bytes: number): void {
    const needed = this.length + bytes;
    if (needed <= this.memory.length) return;
    const memory = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.memory.length));
    this.memory.copy(memory, 0, 0, this.length);
    this.memory = memory;
  }

  add(from: Uint8Array, start: number, end: number): void {
    this.reserve(end - start);
    this.length = copyBytes(from, start, end, this.memory, this.length);
  }

  addInt32(value: number): void {
    this.reserve(4);
    this.length = this.memory.writeInt32LE(value, this.length);
  }

  addDouble(value: number): void {
    this.reserve(8);
    this.length = this.memory.writeDoubleLE(value, this.length);
  }

  addInt64(value: number | bigint): void {
    this.reserve(int64Bytes);
    if (typeof value === 'bigint') {
      this.length = this.memory.writeBigInt64LE(value, this.length);
      return;
    }
    const high = Math.floor(value / 2 ** 32);
    this.length = this.memory.writeUInt32LE(value - high * 2 ** 32, this.length);
    this.length = this.memory.writeInt32LE(high, this.length);
  }
}

function copyBytes(from: Uint8Array, start: number, end: number, to: Uint8Array, at: number): number {
  if (end - start >= longCopy) {
    to.set(from.subarray(start, end), at);
    return at + end - start;
  }
  let place = at;
  for (let next = start; next < end; next++) to[place++] = from[next] as number;
  return place;
}

export function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5 | 0;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ (bytes[at] as number), 0x01000193);
  return hash ^ (hash >>> 15);
}

/**
 * Returns a quoted value without its quotes and escapes. Returns `null` if the value contains no
 * escapes.
 */
export function unescaped(bytes: Buffer, start: number, end: number): Buffer | null {
  for (let at = start + 1; at < end - 1; at++) {
    if (bytes[at] === BACKSLASH) return Buffer.from(JSON.parse(bytes.toString('utf8', start, end)) as string);
  }
  return null;
}

/** Reads an integer. Returns a bigint if a number could not represent all digits. */
export function readInteger(bytes: Buffer, start: number, end: number): number | bigint {
  if (end - start > exactDigits || (end - start === exactDigits && bytes[start] === NINE)) {
    const whole = BigInt(bytes.toString('latin1', start, end));
    const number = Number(whole);
    return Number.isSafeInteger(number) ? number : whole;
  }
  const isNegative = bytes[start] === MINUS;
  let value = 0;
  for (let at = isNegative ? start + 1 : start; at < end; at++) {
    value = 10 * value + (bytes[at] as number) - ZERO;
  }
  return isNegative ? -value : value;
}

const nullText = Buffer.from('null');

/**
 * Returns a function that writes rows as NDJSON. The output equals the NDJSON of PostgreSQL, byte
 * for byte.
 */
export function ndjsonWriter(columns: readonly Column[]): (block: RowBlock) => RowBlock {
  const names = columns.map(({ name }) => Buffer.from(`,"${name}":`));
  const isInstant = columns.map(({ kind }) => kind === 'instant');
  const writesNull = columns.map((column) => column.writesNull);
  const ends = new Int32Array(columns.length);
  const writeInstant = instantWriter();
  const instantCount = isInstant.filter((is) => is).length;
  const longest =
    names.reduce((sum, { length }) => sum + length + nullText.length, 0) +
    instantCount * instantBytes +
    '{}\n'.length;
  return ({ bytes, ends: blockEnds }) => {
    const text = Buffer.allocUnsafeSlow(bytes.length + blockEnds.length * longest);
    const rowEnds: number[] = [];
    let start = 0;
    let at = 0;
    for (const end of blockEnds) {
      findValues(bytes, start, end, ends);
      const rowStart = at;
      for (let column = 0; column < names.length; column++) {
        const valueEnd = ends[column] as number;
        if (valueEnd > start) {
          const name = names[column] as Buffer;
          at = copyBytes(name, 0, name.length, text, at);
          if (isInstant[column] === true) at = writeInstant(readInteger(bytes, start, valueEnd), text, at);
          else at = copyBytes(bytes, start, valueEnd, text, at);
        } else if (writesNull[column] === true) {
          const name = names[column] as Buffer;
          at = copyBytes(name, 0, name.length, text, at);
          at = copyBytes(nullText, 0, nullText.length, text, at);
        }
        start = valueEnd + 1;
      }
      // An opening brace replaces the comma before the first name.
      text[rowStart] = 0x7b;
      text[at++] = 0x7d;
      text[at++] = LF;
      rowEnds.push(at);
      start = end;
    }
    return { bytes: text.subarray(0, at), ends: rowEnds };
  };
}

const dayMicros = 86_400_000_000;
/** The longest year has six digits and a sign. */
const instantBytes = '"-292277-01-01T00:00:00.000000Z"'.length;

/**
 * Writes an instant in quotes and returns the position after it. Caches the date, because
 * consecutive instants mostly share it.
 */
function instantWriter(): (micros: number | bigint, to: Uint8Array, at: number) => number {
  let day = Number.NaN;
  let date = Buffer.alloc(0);
  return (value, to, at) => {
    const micros = Number(value);
    const today = Math.floor(micros / dayMicros);
    if (today !== day) {
      day = today;
      date = Buffer.from(`"${instantOfMicros(today * dayMicros).slice(0, -'00:00:00.000000Z'.length)}`);
    }
    const time = copyBytes(date, 0, date.length, to, at);
    const rest = micros - today * dayMicros;
    const seconds = Math.floor(rest / 1e6);
    writeDigits(Math.floor(seconds / 3600), 2, to, time);
    to[time + 2] = 0x3a;
    writeDigits(Math.floor(seconds / 60) % 60, 2, to, time + 3);
    to[time + 5] = 0x3a;
    writeDigits(seconds % 60, 2, to, time + 6);
    to[time + 8] = 0x2e;
    writeDigits(rest - seconds * 1e6, 6, to, time + 9);
    to[time + 15] = 0x5a;
    to[time + 16] = QUOTE;
    return time + 17;
  };
}

function writeDigits(number: number, count: number, to: Uint8Array, at: number): void {
  let rest = number;
  for (let place = at + count - 1; place >= at; place--) {
    const next = Math.floor(rest / 10);
    to[place] = ZERO + rest - 10 * next;
    rest = next;
  }
}
