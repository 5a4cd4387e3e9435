import { deltaBinaryUnpack, deltaByteArray, deltaLengthByteArray } from 'hyparquet/src/delta.js';
import { byteStreamSplit } from 'hyparquet/src/encoding.js';
import { readVarInt } from 'hyparquet/src/thrift.js';
import { DamagedFile } from '../domain/errors.ts';
import { MAX_PARQUET_HELD_BYTES, MAX_PARQUET_PAGE_BYTES, MAX_PARQUET_PAGE_VALUES } from '../domain/limits.ts';
import type { ParquetLeaf, StoredValue } from './parquet-columns.ts';
import type { JsonText } from './typed-rows.ts';

/*
 * Reads the values of a page as JSON, one at a time. Plain and dictionary values are read in place; the rare delta encodings
 * are decoded by hyparquet, once they have been found to be within bounds.
 */

export type NextValue = () => JsonText;

/** The position of the next value: the bytes of a page, from `at` on. */
export interface ValueBytes {
  readonly bytes: Uint8Array;
  readonly at: number;
}

const OBJECT_BYTES = 128;

/** A dictionary holds the repeated values of a column; pages refer to them by index. */
export class Dictionary {
  readonly heldBytes: number;
  readonly #leaf: ParquetLeaf;
  readonly #plain: PlainValues;
  readonly #starts: Int32Array;
  readonly #texts: JsonText[] = [];
  #spareChars: number;

  constructor(leaf: ParquetLeaf, bytes: Uint8Array, count: number) {
    this.#leaf = leaf;
    this.#plain = new PlainValues(leaf, { bytes, at: 0 });
    this.#starts = new Int32Array(count);
    for (let index = 0; index < count; index++) {
      this.#starts[index] = this.#plain.at;
      this.#plain.skip();
    }
    this.#spareChars = 2 * bytes.length;
    this.heldBytes = 3 * bytes.length + (Int32Array.BYTES_PER_ELEMENT + 8) * count;
  }

  text(index: number): JsonText {
    const known = this.#texts[index];
    if (known !== undefined) return known;
    const start = this.#starts[index];
    if (start === undefined) throw new DamagedFile('a page names a value that its dictionary lacks');
    this.#plain.at = start;
    const text = this.#leaf.toJson(this.#plain.next());
    // A number that JSON cannot hold is counted each time.
    if (text !== 'null' && this.#spareChars >= text.length) {
      this.#spareChars -= text.length;
      this.#texts[index] = text;
    }
    return text;
  }
}

/** Reads plain values one after the other. Reading beyond the end of the page throws. */
class PlainValues {
  at: number;
  readonly next: () => StoredValue;
  readonly skip: () => void;

  constructor({ element }: ParquetLeaf, { bytes, at }: ValueBytes) {
    this.at = at;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (element.type === 'BYTE_ARRAY') {
      this.next = () => {
        const length = view.getUint32(this.at, true);
        const start = this.at + 4;
        this.at = start + length;
        return octetsAt(bytes, start, length);
      };
      this.skip = () => {
        this.at += 4 + view.getUint32(this.at, true);
        if (this.at > bytes.length) throw new DamagedFile('a page is shorter than its values');
      };
      return;
    }
    if (element.type === 'BOOLEAN') {
      let bit = 8 * at;
      this.next = () => ((view.getUint8(bit >>> 3) >>> (bit++ & 7)) & 1) === 1;
      this.skip = () => void this.next();
      return;
    }
    const width = widthOf(element.type, element.type_length);
    const read = numbers[element.type ?? '']?.read;
    this.next = () => {
      this.at += width;
      const start = this.at - width;
      return read === undefined ? octetsAt(bytes, start, width) : read(view, start);
    };
    this.skip = () => {
      this.at += width;
      if (this.at > bytes.length) throw new DamagedFile('a page is shorter than its values');
    };
  }
}

/** Types of values of one length, and how one is read. */
const numbers: Readonly<
  Record<string, { readonly width: number; read(view: DataView, at: number): StoredValue }>
> = {
  INT32: { width: 4, read: (view, at) => view.getInt32(at, true) },
  INT64: { width: 8, read: (view, at) => view.getBigInt64(at, true) },
  INT96: {
    width: 12,
    read: (view, at) => (BigInt(view.getInt32(at + 8, true)) << 64n) | view.getBigUint64(at, true),
  },
  FLOAT: { width: 4, read: (view, at) => view.getFloat32(at, true) },
  DOUBLE: { width: 8, read: (view, at) => view.getFloat64(at, true) },
};

function octetsAt(bytes: Uint8Array, start: number, length: number): Uint8Array {
  if (start + length > bytes.length) throw new DamagedFile('a page is shorter than its values');
  return bytes.subarray(start, start + length);
}

function widthOf(type: string | undefined, length: number | undefined): number {
  const width = type === 'FIXED_LEN_BYTE_ARRAY' ? length : numbers[type ?? '']?.width;
  if (width === undefined || !(width > 0 && width <= MAX_PARQUET_PAGE_BYTES)) {
    throw new DamagedFile('a column has values of no known length');
  }
  return width;
}

interface EncodedPage extends ValueBytes {
  readonly encoding: string;
  /** The most values that it can have; nulls are not written. */
  readonly count: number;
  readonly dictionary: Dictionary | null;
}

/** Opens the values of a page; `heldBytes` is the memory of values that had to be decoded at once. */
export function openValues(leaf: ParquetLeaf, page: EncodedPage): { next: NextValue; heldBytes: number } {
  const { bytes, at, encoding } = page;
  const { toJson } = leaf;
  const { type } = leaf.element;
  switch (encoding) {
    case 'PLAIN': {
      const plain = new PlainValues(leaf, page);
      return { next: () => toJson(plain.next()), heldBytes: 0 };
    }
    case 'PLAIN_DICTIONARY':
    case 'RLE_DICTIONARY': {
      const { dictionary } = page;
      if (dictionary === null) throw new DamagedFile('a column lacks its dictionary');
      // A page of nothing but nulls may end here.
      const places = at < bytes.length ? new Runs(bytes, at + 1, bytes.length, bytes[at] ?? 0) : null;
      return { next: () => dictionary.text(places === null ? -1 : places.next()), heldBytes: 0 };
    }
    case 'RLE': {
      if (type !== 'BOOLEAN') throw new DamagedFile('a page has runs of what is not true or false');
      const bits = at < bytes.length ? new Runs(bytes, at + 4, bytes.length, 1) : null;
      return { next: () => toJson(bits?.next() === 1), heldBytes: 0 };
    }
    default: {
      const values = decodeAtOnce(leaf, page);
      let index = 0;
      const next = () => {
        const value = values[index++];
        if (value === undefined) throw new DamagedFile('a page has fewer values than it says');
        return toJson(value);
      };
      const held = values instanceof Int32Array || values instanceof BigInt64Array ? 8 : OBJECT_BYTES;
      return { next, heldBytes: held * values.length };
    }
  }
}

/** Decodes delta and byte-stream-split encodings, which must be read from the first value to the last. */
function decodeAtOnce({ element }: ParquetLeaf, page: EncodedPage): ArrayLike<StoredValue> {
  const { bytes, at, encoding, count } = page;
  const { type, type_length: length } = element;
  const reader = { view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), offset: at };
  if (encoding === 'BYTE_STREAM_SPLIT') {
    const values = Math.floor((bytes.length - at) / widthOf(type, length));
    if (values > count) throw new DamagedFile('a page has more values than it says');
    return byteStreamSplit(reader, values, type as 'DOUBLE', length) as ArrayLike<StoredValue>;
  }
  if (at === bytes.length) return [];
  const values = countOfDeltas(reader, count);
  if (encoding === 'DELTA_BINARY_PACKED') {
    if (type !== 'INT32' && type !== 'INT64') throw new DamagedFile('a page has differences of no numbers');
    const output = new BigInt64Array(values);
    if (values > 0) deltaBinaryUnpack(reader, values, output);
    // DuckDB writes the first unsigned number with 33 bits, which hyparquet's 32-bit reader would cut off.
    return type === 'INT64' ? output : Int32Array.from(output, (value) => Number(BigInt.asIntN(32, value)));
  }
  if (type !== 'BYTE_ARRAY' && type !== 'FIXED_LEN_BYTE_ARRAY')
    throw new DamagedFile('a page has lengths of no bytes');
  if (values * OBJECT_BYTES > MAX_PARQUET_HELD_BYTES) throw new DamagedFile('a page has too many values');
  const output = new Array<Uint8Array>(values);
  if (values === 0) return output;
  if (encoding === 'DELTA_LENGTH_BYTE_ARRAY') deltaLengthByteArray(reader, values, output);
  else if (encoding === 'DELTA_BYTE_ARRAY') {
    checkPrefixes({ ...reader }, values);
    deltaByteArray(reader, values, output);
  } else throw new DamagedFile(`a page is written as ${encoding}, which is not read`);
  return output;
}

/** The most parts of a block; one byte of each is read up front. */
const MAX_DELTA_PARTS = 4_096;

/** A list of differences begins with the length of its blocks, their parts, and how many values it has. */
function countOfDeltas(reader: { readonly view: DataView; offset: number }, count: number): number {
  const at = { view: reader.view, offset: reader.offset };
  const [, parts = 0, values = 0] = Array.from({ length: 3 }, () => readVarInt(at) >>> 0);
  if (parts > MAX_DELTA_PARTS || values > count || values > MAX_PARQUET_PAGE_VALUES) {
    throw new DamagedFile('a page has more values than it says');
  }
  return values;
}

/** Bounds the memory: each value may repeat the one before it and add a byte, so a page could grow to its square. */
function checkPrefixes(reader: { readonly view: DataView; offset: number }, count: number): void {
  const prefixes = new Int32Array(count);
  deltaBinaryUnpack(reader, count, prefixes);
  countOfDeltas(reader, count);
  let bytes = 0;
  for (const prefix of prefixes) bytes += Math.max(0, prefix);
  if (bytes > MAX_PARQUET_PAGE_BYTES) throw new DamagedFile('a page unpacks to more than is taken');
}

/**
 * Runs are how Parquet writes levels and dictionary indexes: a repeated value and its count, or values of a few bits side by
 * side. They are read one value at a time, so a run of a thousand million values, five bytes long, takes no memory.
 */
export class Runs {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  readonly #width: number;
  readonly #mask: number;
  #at: number;
  #left = 0;
  #isPacked = false;
  #value = 0;
  #bit = 0;

  /** Reads values of `width` bits between two positions; with a width of 0 they take no bytes and are all 0. */
  constructor(bytes: Uint8Array, start: number, end: number, width: number) {
    if (width > MAX_WIDTH || start < 0 || start > end || end > bytes.length) {
      throw new DamagedFile('a page is shorter than it says');
    }
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
    this.#width = width;
    this.#mask = 2 ** width - 1;
  }

  next(): number {
    if (this.#width === 0) return 0;
    while (this.#left === 0) this.#open();
    this.#left--;
    return this.#isPacked ? this.#unpack() : this.#value;
  }

  #open(): void {
    if (this.#isPacked) this.#at += Math.ceil(this.#bit / 8);
    const header = this.#varint();
    this.#isPacked = (header & 1) === 1;
    this.#left = this.#isPacked ? (header >>> 1) * 8 : header >>> 1;
    this.#bit = 0;
    if (this.#isPacked) return;
    this.#value = 0;
    for (let shift = 0; shift < this.#width; shift += 8) this.#value |= this.#byte(this.#at++) << shift;
    this.#value >>>= 0;
  }

  #unpack(): number {
    const first = this.#at + (this.#bit >>> 3);
    const shift = this.#bit & 7;
    this.#bit += this.#width;
    const last = this.#at + ((this.#bit - 1) >>> 3);
    if (last >= this.#end) throw tooFew();
    let value = (this.#bytes[first] ?? 0) >>> shift;
    let factor = 2 ** (8 - shift);
    for (let at = first + 1; at <= last; at++) {
      value += (this.#bytes[at] ?? 0) * factor;
      factor *= 256;
    }
    return this.#width === MAX_WIDTH ? value % 2 ** MAX_WIDTH : (value & this.#mask) >>> 0;
  }

  /** Reads at most five bytes: a run has fewer values than a page may have. */
  #varint(): number {
    for (let value = 0, shift = 0; shift < 35; shift += 7) {
      const byte = this.#byte(this.#at++);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    throw new DamagedFile('a run has no length');
  }

  #byte(at: number): number {
    if (at >= this.#end) throw tooFew();
    return this.#bytes[at] ?? 0;
  }
}

const MAX_WIDTH = 32;

function tooFew(): DamagedFile {
  return new DamagedFile('a page has fewer values than it says');
}
