import { crc32 } from 'node:zlib';
import type { ColumnMetaData, Encoding, Statistics } from 'hyparquet';
import { ByteWriter, type SchemaElement } from 'hyparquet-writer';
import { writePageHeader } from 'hyparquet-writer/src/datapage.js';
import { writeRleBitPackedHybrid } from 'hyparquet-writer/src/encoding.js';
import { snappyCompress } from 'hyparquet-writer/src/snappy.js';
import { Fault } from '../../domain/errors.ts';
import type { Column } from '../../domain/export-columns.ts';
import { Bytes, hashOf, readInteger, unescaped } from './rows.ts';

/* Columns of a row group, encoded as values come: hyparquet-writer, whose pages, levels and headers are used, would copy each. */

/** Values as Parquet has them, plain or as a dictionary with an index for each value. */
interface Values {
  readonly plain: Buffer;
  readonly dictionary: { readonly entries: number; readonly indexes: Int32Array } | null;
  readonly min: Uint8Array | bigint | number | undefined;
  readonly max: Uint8Array | bigint | number | undefined;
}

/** Gathers the values of one column that are not null. */
interface ValueStore {
  add(bytes: Buffer, start: number, end: number): void;
  /** Until `clear`. */
  values(): Values;
  clear(): void;
}

export class ParquetColumn {
  readonly name: string;
  readonly #column: Column;
  readonly #element: SchemaElement;
  readonly #store: ValueStore;
  /** A level for each row: 0 without a value. */
  #levels: number[] = [];
  #nulls = 0;

  /** `maxRows`: of a row group. */
  constructor(column: Column, element: SchemaElement, maxRows: number) {
    this.name = column.name;
    this.#column = column;
    this.#element = element;
    this.#store = storeOf(column, maxRows);
  }

  /** The value of the next row, as COPY wrote it. Nothing at all is a null: even an empty text comes with its quotes. */
  add(bytes: Buffer, start: number, end: number): void {
    const isNull = end <= start;
    if (isNull && !this.#column.isOptional) throw new Fault(`a row has no ${this.#column.name}`);
    this.#levels.push(isNull ? 0 : 1);
    if (isNull) this.#nulls++;
    else this.#store.add(bytes, start, end);
  }

  /** Writes what was added as a chunk of the file, and forgets it. `onText` is told of texts, each at least once. */
  write(
    writer: ByteWriter,
    onText?: ((texts: Buffer, start: number, end: number) => void) | null,
  ): ColumnMetaData {
    const offset = writer.offset;
    const values = this.#store.values();
    const { dictionary, plain, min, max } = values;
    if (onText) eachText(plain, onText);
    const unpacked = dictionary === null ? 0 : writeDictionary(writer, plain, dictionary.entries);
    const dataOffset = writer.offset;
    const uncompressed = unpacked + this.#writeData(writer, values);
    const encodings: Encoding[] = dictionary === null ? ['PLAIN'] : ['PLAIN', 'RLE_DICTIONARY'];
    const statistics: Statistics = { min_value: min, max_value: max, null_count: BigInt(this.#nulls) };
    const metadata: ColumnMetaData = {
      type: this.#element.type ?? 'BYTE_ARRAY',
      encodings,
      path_in_schema: [this.name],
      codec: 'SNAPPY',
      num_values: BigInt(this.#levels.length),
      total_uncompressed_size: BigInt(uncompressed),
      total_compressed_size: BigInt(writer.offset - offset),
      data_page_offset: BigInt(dataOffset),
      ...(dictionary === null ? {} : { dictionary_page_offset: BigInt(offset) }),
      // The least and greatest text of JSON tell a reader nothing.
      ...(this.#column.kind === 'json' ? {} : { statistics }),
    };
    this.#store.clear();
    this.#levels = [];
    this.#nulls = 0;
    return metadata;
  }

  #writeData(writer: ByteWriter, { plain, dictionary }: Values): number {
    const levels = new ByteWriter();
    if (this.#column.isOptional) writeRleBitPackedHybrid(levels, this.#levels, 1);
    const bytes = dictionary === null ? plain : packIndexes(dictionary.indexes, dictionary.entries);
    return writePage(writer, levels.getBytes(), bytes, {
      type: 'DATA_PAGE_V2',
      data_page_header_v2: {
        num_values: this.#levels.length,
        num_nulls: this.#nulls,
        num_rows: this.#levels.length,
        encoding: dictionary === null ? 'PLAIN' : 'RLE_DICTIONARY',
        definition_levels_byte_length: levels.offset,
        repetition_levels_byte_length: 0,
        is_compressed: true,
      },
    });
  }
}

function storeOf(column: Column, maxRows: number): ValueStore {
  if (column.kind === 'boolean') return new Booleans();
  if (column.kind === 'text' || column.kind === 'json') return new Texts(column, maxRows);
  return new Numbers(column);
}

function writeDictionary(writer: ByteWriter, plain: Uint8Array, entries: number): number {
  return writePage(writer, new Uint8Array(), plain, {
    type: 'DICTIONARY_PAGE',
    dictionary_page_header: { num_values: entries, encoding: 'PLAIN' },
  });
}

type PageHeader = Parameters<typeof writePageHeader>[1];

/** Levels are not packed. Gives back what the page comes to when unpacked. */
function writePage(
  writer: ByteWriter,
  levels: Uint8Array,
  plain: Uint8Array,
  about: Omit<PageHeader, 'uncompressed_page_size' | 'compressed_page_size' | 'crc'>,
): number {
  const packed = snappyCompress(plain);
  const start = writer.offset;
  writePageHeader(writer, {
    ...about,
    uncompressed_page_size: levels.length + plain.length,
    compressed_page_size: levels.length + packed.length,
    crc: crc32(packed, crc32(levels)) | 0,
  });
  const headerBytes = writer.offset - start;
  writer.appendBytes(levels);
  writer.appendBytes(packed);
  return headerBytes + levels.length + plain.length;
}

function bitsOf(entries: number): number {
  return Math.ceil(Math.log2(entries));
}

function packIndexes(indexes: Int32Array, entries: number): Uint8Array {
  const page = new ByteWriter();
  page.appendUint8(bitsOf(entries));
  writeRleBitPackedHybrid(page, indexes as never, bitsOf(entries));
  return page.getBytes();
}

/** Microseconds since 1970, or doubles. Hardly one is like another, so there is no dictionary. */
class Numbers implements ValueStore {
  readonly #isInstant: boolean;
  readonly #plain = new Bytes();
  #min: number | bigint | null = null;
  #max: number | bigint | null = null;

  constructor({ kind }: Column) {
    this.#isInstant = kind === 'instant';
  }

  add(bytes: Buffer, start: number, end: number): void {
    const value = this.#isInstant
      ? readInteger(bytes, start, end)
      : Number(bytes.toString('latin1', start, end));
    if (this.#isInstant) this.#plain.addInt64(value);
    else this.#plain.addDouble(Number(value));
    if (this.#min === null || value < this.#min) this.#min = value;
    if (this.#max === null || value > this.#max) this.#max = value;
  }

  values(): Values {
    const bound = (value: number | bigint | null) =>
      value === null ? undefined : this.#isInstant ? BigInt(value) : value;
    return { plain: this.#plain.view(), dictionary: null, min: bound(this.#min), max: bound(this.#max) };
  }

  clear(): void {
    this.#plain.clear();
    this.#min = null;
    this.#max = null;
  }
}

/** `true` or `false`, a bit each. */
class Booleans implements ValueStore {
  #values: boolean[] = [];

  add(_: Buffer, start: number, end: number): void {
    this.#values.push(end - start === 'true'.length);
  }

  values(): Values {
    const plain = Buffer.alloc(Math.ceil(this.#values.length / 8));
    for (const [at, isTrue] of this.#values.entries())
      if (isTrue) plain[at >> 3] = (plain[at >> 3] as number) | (1 << (at & 7));
    return { plain, dictionary: null, min: undefined, max: undefined };
  }

  clear(): void {
    this.#values = [];
  }
}

const lengthBytes = 4;
/** After so many values a dictionary has shown whether it is worth its while. */
const trialValues = 250;
/** Slots that are looked at for a value; further ones are for values made to collide. */
const maxProbes = 32;

/** Texts with their lengths. A repeated one is kept once, with an index, until most turn out to be new: a dictionary saves nothing then. */
class Texts implements ValueStore {
  readonly #isJson: boolean;
  readonly #slots: Int32Array;
  readonly #indexes: Int32Array;
  /** The start and hash of each text that is kept. */
  readonly #places: Int32Array;
  readonly #hashes: Int32Array;
  #kept = new Bytes();
  #spare = new Bytes();
  #entries = 0;
  #count = 0;
  #plainBytes = 0;
  #hasDictionary = true;

  constructor({ kind }: Column, maxRows: number) {
    this.#isJson = kind === 'json';
    this.#slots = new Int32Array(2 ** Math.ceil(Math.log2(2 * maxRows)));
    this.#indexes = new Int32Array(maxRows);
    this.#places = new Int32Array(maxRows);
    this.#hashes = new Int32Array(maxRows);
  }

  add(bytes: Buffer, start: number, end: number): void {
    if (this.#isJson) {
      this.#add(bytes, start, end);
      return;
    }
    const text = unescaped(bytes, start, end);
    if (text === null) this.#add(bytes, start + 1, end - 1);
    else this.#add(text, 0, text.length);
  }

  values(): Values {
    const indexBytes = (this.#count * bitsOf(Math.max(1, this.#entries))) / 8;
    if (this.#hasDictionary && 2 * (this.#kept.length + indexBytes) > this.#plainBytes) this.#makePlain();
    const plain = this.#kept.view();
    const indexes = this.#indexes.subarray(0, this.#count);
    const dictionary = this.#hasDictionary && this.#count > 0 ? { entries: this.#entries, indexes } : null;
    return { plain, dictionary, ...boundsOf(this.#isJson ? plain.subarray(0, 0) : plain) };
  }

  clear(): void {
    this.#kept.clear();
    this.#slots.fill(0);
    this.#entries = 0;
    this.#count = 0;
    this.#plainBytes = 0;
    this.#hasDictionary = true;
  }

  #add(bytes: Uint8Array, start: number, end: number): void {
    this.#plainBytes += lengthBytes + end - start;
    if (this.#hasDictionary) {
      const index = this.#find(bytes, start, end);
      if (index !== null) {
        this.#indexes[this.#count++] = index;
        if (this.#count === trialValues && 2 * this.#entries > trialValues) this.#makePlain();
        return;
      }
      this.#makePlain();
    }
    this.#count++;
    this.#keep(this.#kept, bytes, start, end);
  }

  /** The index of a text, which is kept if it is new; null where too many others have its place. */
  #find(bytes: Uint8Array, start: number, end: number): number | null {
    const hash = hashOf(bytes, start, end);
    const mask = this.#slots.length - 1;
    for (let probe = 0; probe < maxProbes; probe++) {
      const slot = (hash + probe) & mask;
      const entry = (this.#slots[slot] as number) - 1;
      if (entry === -1) {
        this.#places[this.#entries] = this.#kept.length;
        this.#hashes[this.#entries] = hash;
        this.#keep(this.#kept, bytes, start, end);
        this.#slots[slot] = ++this.#entries;
        return this.#entries - 1;
      }
      if (this.#hashes[entry] === hash && this.#isEntry(entry, bytes, start, end)) return entry;
    }
    return null;
  }

  #isEntry(entry: number, bytes: Uint8Array, start: number, end: number): boolean {
    const { memory } = this.#kept;
    const place = this.#places[entry] as number;
    if (memory.readInt32LE(place) !== end - start) return false;
    let at = place + lengthBytes;
    for (let next = start; next < end; next++) if (bytes[next] !== memory[at++]) return false;
    return true;
  }

  #keep(to: Bytes, bytes: Uint8Array, start: number, end: number): void {
    to.addInt32(end - start);
    to.add(bytes, start, end);
  }

  /** Each text as often as it came, in order. */
  #makePlain(): void {
    this.#hasDictionary = false;
    if (this.#entries === this.#count) return;
    const { memory } = this.#kept;
    for (const index of this.#indexes.subarray(0, this.#count)) {
      const place = this.#places[index] as number;
      this.#spare.add(memory, place, place + lengthBytes + memory.readInt32LE(place));
    }
    [this.#kept, this.#spare] = [this.#spare, this.#kept];
    this.#spare.clear();
  }
}

function eachText(texts: Buffer, visit: (texts: Buffer, start: number, end: number) => void): void {
  for (let at = 0; at < texts.length; ) {
    const start = at + lengthBytes;
    at = start + texts.readInt32LE(at);
    visit(texts, start, at);
  }
}

/** The least and the greatest of texts with their lengths, byte by byte, as copies. */
function boundsOf(texts: Buffer): Pick<Values, 'min' | 'max'> {
  if (texts.length === 0) return { min: undefined, max: undefined };
  let [min, max] = [0, 0];
  for (let at = 0; at < texts.length; at += lengthBytes + texts.readInt32LE(at)) {
    if (isBefore(texts, at, min)) min = at;
    else if (isBefore(texts, max, at)) max = at;
  }
  const copy = (at: number) =>
    Uint8Array.from(texts.subarray(at + lengthBytes, at + lengthBytes + texts.readInt32LE(at)));
  return { min: copy(min), max: copy(max) };
}

/** Returns true if the text at `a` comes before that at `b`. */
function isBefore(texts: Buffer, a: number, b: number): boolean {
  const [lengthOfA, lengthOfB] = [texts.readInt32LE(a), texts.readInt32LE(b)];
  const common = Math.min(lengthOfA, lengthOfB);
  for (let at = lengthBytes; at < lengthBytes + common; at++) {
    const difference = (texts[a + at] as number) - (texts[b + at] as number);
    if (difference !== 0) return difference < 0;
  }
  return lengthOfA < lengthOfB;
}
