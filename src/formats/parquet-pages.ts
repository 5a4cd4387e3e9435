import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { type ColumnMetaData, type DecodedArray, type PageHeader, snappyUncompress } from 'hyparquet';
import { assembleLists } from 'hyparquet/src/assemble.js';
import { parquetHeader } from 'hyparquet/src/column.js';
import { convert, convertWithDictionary, DEFAULT_PARSERS } from 'hyparquet/src/convert.js';
import { readDataPage, readDataPageV2 } from 'hyparquet/src/datapage.js';
import { deltaBinaryUnpack } from 'hyparquet/src/delta.js';
import { readRleBitPackedHybrid } from 'hyparquet/src/encoding.js';
import { readPlain } from 'hyparquet/src/plain.js';
import { getMaxDefinitionLevel, getMaxRepetitionLevel } from 'hyparquet/src/schema.js';
import { MAX_PARQUET_PAGE_BYTES, MAX_PARQUET_PAGE_VALUES } from '../domain/limits.ts';
import { type ParquetLeaf, parsers } from './parquet-columns.ts';
import type { ReadRange } from './whole-file.ts';

/*
 * The pages of one column of a row group, one at a time. hyparquet decodes them, but believes what they say of themselves:
 * a run of a thousand million values takes five bytes, and would be written into memory. So each page is unpacked and
 * looked through here first, and what is not within its bounds is refused.
 */

/** Something that no Parquet file can hold, or that is not understood here; the message goes into a sentence. */
export class ParquetDamage extends Error {
  override readonly name = 'ParquetDamage';
}

/** A header has statistics, which may hold two values of the column. */
const HEADER_BYTES = 8 * 1024;
const MAX_PAGE_HEADER_BYTES = 4 * 1024 * 1024;

export class ParquetPages {
  /** Of the page read last and the dictionary, unpacked. */
  heldBytes = 0;
  readonly #leaf: ParquetLeaf;
  readonly #read: ReadRange;
  readonly #end: number;
  #at: number;
  #dictionary: DecodedArray | undefined;
  #dictionaryBytes = 0;

  constructor(leaf: ParquetLeaf, chunk: ColumnMetaData, fileBytes: number, read: ReadRange) {
    this.#leaf = leaf;
    this.#read = read;
    const { dictionary_page_offset: dictionary, data_page_offset: data } = chunk;
    this.#at = Number(dictionary !== undefined && dictionary > 0n && dictionary < data ? dictionary : data);
    this.#end = this.#at + Number(chunk.total_compressed_size);
    if (!(this.#at >= 4 && this.#end >= this.#at && this.#end <= fileBytes)) {
      throw new ParquetDamage('a column lies outside of the file');
    }
  }

  /** The values of the next page; of a nested column what comes before is continued in `before`. Null after the last. */
  async next(before: DecodedArray | undefined): Promise<DecodedArray | null> {
    while (this.#at < this.#end) {
      const { header, headerBytes } = await this.#readHeader();
      const start = this.#at + headerBytes;
      const length = header.compressed_page_size;
      if (!(length >= 0 && start + length <= this.#end))
        throw new ParquetDamage('a page is longer than its column');
      this.#at = start + length;
      if (header.type === 'INDEX_PAGE') continue;
      const bytes = new Uint8Array(await this.#read(start, start + length));
      if (header.type === 'DICTIONARY_PAGE') this.#readDictionary(header, bytes);
      else return this.#decode(header, bytes, before);
    }
    return null;
  }

  async #readHeader(): Promise<{ header: PageHeader; headerBytes: number }> {
    for (let size = HEADER_BYTES; ; size *= 8) {
      const end = Math.min(this.#end, this.#at + size);
      const bytes = new Uint8Array(await this.#read(this.#at, end));
      const reader = { view: new DataView(bytes.buffer), offset: 0 };
      try {
        return { header: parquetHeader(reader), headerBytes: reader.offset };
      } catch (error) {
        // It may go on.
        if (end === this.#end || size > MAX_PAGE_HEADER_BYTES) throw error;
      }
    }
  }

  #readDictionary(header: PageHeader, bytes: Uint8Array): void {
    const { chunk, element } = this.#leaf;
    const plain = unpack(bytes, header.uncompressed_page_size, chunk.codec);
    const count = header.dictionary_page_header?.num_values ?? -1;
    checkCount(count);
    const reader = { view: new DataView(plain.buffer, plain.byteOffset, plain.byteLength), offset: 0 };
    const values = readPlain(reader, chunk.type, count, element.type_length);
    this.#dictionary = convert(values, this.#decoder());
    this.#dictionaryBytes = plain.length;
  }

  #decode(header: PageHeader, bytes: Uint8Array, before: DecodedArray | undefined): DecodedArray {
    const { data_page_header: v1, data_page_header_v2: v2 } = header;
    const decoder = this.#decoder();
    const { schemaPath } = this.#leaf;
    const encoding = (v1 ?? v2)?.encoding;
    const count = (v1 ?? v2)?.num_values ?? -1;
    checkCount(count);
    if (encoding === undefined) throw new ParquetDamage('a page says not how it is written');
    let page: ReturnType<typeof readDataPage>;
    if (v1 !== undefined) {
      const plain = unpack(bytes, header.uncompressed_page_size, this.#leaf.chunk.codec);
      this.heldBytes = plain.length + this.#dictionaryBytes;
      checkV1(plain, count, encoding, this.#leaf);
      page = readDataPage(plain, v1, decoder);
    } else if (v2 !== undefined) {
      const plain = unpackV2(header, bytes, this.#leaf);
      this.heldBytes = plain.length + this.#dictionaryBytes;
      const { definition_levels_byte_length: definition, repetition_levels_byte_length: repetition } = v2;
      checkV2(plain, { count, nulls: v2.num_nulls, encoding, definition, repetition }, this.#leaf);
      const uncompressed = { ...v2, is_compressed: false };
      page = readDataPageV2(plain, { ...header, data_page_header_v2: uncompressed }, decoder);
    } else throw new ParquetDamage(`a page of an unknown kind, ${header.type}`);
    const values = convertWithDictionary(page.dataPage, this.#dictionary, encoding, decoder);
    const output = Array.isArray(before) ? before : [];
    return assembleLists(output, page.definitionLevels, page.repetitionLevels, values, [...schemaPath]);
  }

  /** What hyparquet is told of the column; the page has been unpacked. */
  #decoder() {
    const { chunk, element, schemaPath } = this.#leaf;
    return {
      pathInSchema: chunk.path_in_schema,
      type: chunk.type,
      element,
      schemaPath: [...schemaPath],
      codec: 'UNCOMPRESSED' as const,
      parsers: { ...DEFAULT_PARSERS, ...parsers },
    };
  }
}

function checkCount(count: number): void {
  if (count >= 0 && count <= MAX_PARQUET_PAGE_VALUES) return;
  throw new ParquetDamage(`a page of ${count} values; at most ${MAX_PARQUET_PAGE_VALUES} are taken`);
}

function unpack(bytes: Uint8Array, length: number, codec: string): Uint8Array {
  if (!(length >= 0 && length <= MAX_PARQUET_PAGE_BYTES)) {
    throw new ParquetDamage(`a page of ${length} bytes; at most ${MAX_PARQUET_PAGE_BYTES} are taken`);
  }
  const plain = unpackers.get(codec)?.(bytes, length);
  if (plain === undefined) {
    throw new ParquetDamage(`it is packed with ${codec}; write it with Snappy, gzip, Brotli or none`);
  }
  if (plain.length !== length) throw new ParquetDamage('a page has another length than it says');
  return plain;
}

type Unpack = (bytes: Uint8Array, length: number) => Uint8Array;

const unpackers: ReadonlyMap<string, Unpack> = new Map<string, Unpack>([
  ['UNCOMPRESSED', (bytes) => bytes],
  [
    'SNAPPY',
    (bytes, length) => {
      const plain = new Uint8Array(length);
      if (length > 0) snappyUncompress(bytes, plain);
      return plain;
    },
  ],
  // Of their own memory: views of it begin at its beginning.
  ['GZIP', (bytes, length) => new Uint8Array(gunzipSync(bytes, { maxOutputLength: Math.max(1, length) }))],
  [
    'BROTLI',
    (bytes, length) => new Uint8Array(brotliDecompressSync(bytes, { maxOutputLength: Math.max(1, length) })),
  ],
]);

/** The levels of a page of version 2 are never packed. */
function unpackV2(header: PageHeader, bytes: Uint8Array, { chunk }: ParquetLeaf): Uint8Array {
  const { data_page_header_v2: v2, uncompressed_page_size: length } = header;
  const levels = (v2?.definition_levels_byte_length ?? 0) + (v2?.repetition_levels_byte_length ?? 0);
  if (!(levels >= 0 && levels <= bytes.length)) throw new ParquetDamage('a page is shorter than its levels');
  const codec = v2?.is_compressed === false ? 'UNCOMPRESSED' : chunk.codec;
  const plain = unpack(bytes.subarray(levels), length - levels, codec);
  const whole = new Uint8Array(length);
  whole.set(bytes.subarray(0, levels));
  whole.set(plain, levels);
  return whole;
}

function checkV1(page: Uint8Array, count: number, encoding: string, { schemaPath }: ParquetLeaf): void {
  const view = new DataView(page.buffer, page.byteOffset, page.byteLength);
  const [repetition, definition] = [
    getMaxRepetitionLevel([...schemaPath]),
    getMaxDefinitionLevel([...schemaPath]),
  ];
  let at = 0;
  let nulls = 0;
  for (const level of [repetition, definition]) {
    if (level === 0) continue;
    const length = view.getUint32(at, true);
    checkRuns(view, at + 4, at + 4 + length, bitWidth(level), count);
    if (level === definition) nulls = countBelow(level, view, at, count);
    at += 4 + length;
  }
  checkValues(view, at, count - nulls, encoding);
}

/** Nulls have a level and no value. */
function countBelow(level: number, view: DataView, offset: number, count: number): number {
  const levels = new Array<number>(count);
  readRleBitPackedHybrid({ view, offset }, bitWidth(level), levels);
  return levels.reduce((nulls, each) => (each === level ? nulls : nulls + 1), 0);
}

interface PageFactsV2 {
  readonly count: number;
  readonly nulls: number;
  readonly encoding: string;
  readonly definition: number;
  readonly repetition: number;
}

function checkV2(page: Uint8Array, facts: PageFactsV2, { schemaPath }: ParquetLeaf): void {
  const { count, nulls, definition, repetition } = facts;
  if (!(nulls >= 0 && nulls <= count)) throw new ParquetDamage('a page has more nulls than values');
  const view = new DataView(page.buffer, page.byteOffset, page.byteLength);
  const levels = [
    [0, repetition, getMaxRepetitionLevel([...schemaPath])],
    [repetition, definition, getMaxDefinitionLevel([...schemaPath])],
  ] as const;
  for (const [at, length, level] of levels) {
    if (level > 0) checkRuns(view, at, at + length, bitWidth(level), count);
  }
  checkValues(view, repetition + definition, count - nulls, facts.encoding);
}

/** What is told of the values themselves; the other encodings have a bound by their length. */
function checkValues(view: DataView, at: number, count: number, encoding: string): void {
  if (encoding === 'PLAIN_DICTIONARY' || encoding === 'RLE_DICTIONARY') {
    if (count > 0) checkRuns(view, at + 1, view.byteLength, view.getUint8(at), count);
  } else if (encoding === 'RLE') {
    if (count > 0) checkRuns(view, at + 4, at + 4 + view.getUint32(at, true), 1, count);
  } else if (encoding === 'DELTA_BYTE_ARRAY') checkPrefixes(view, at, count);
}

/** Bit-packed runs are filled up to a multiple of eight values, and writers make them of so many groups at most. */
const SPARE_VALUES = 512;

/** Goes over the runs without their values: no more than the page has. */
function checkRuns(view: DataView, start: number, end: number, width: number, count: number): void {
  if (width > 32 || end > view.byteLength) throw new ParquetDamage('a page is shorter than it says');
  const at = { view, offset: start };
  let seen = 0;
  while (seen < count && at.offset < end) {
    const header = readVarint(at);
    const isPacked = (header & 1) === 1;
    const values = isPacked ? (header >>> 1) * 8 : header >>> 1;
    seen += values;
    if (seen > count + (isPacked ? SPARE_VALUES : 0))
      throw new ParquetDamage('a run is longer than its page');
    at.offset += isPacked ? (values / 8) * width : Math.ceil(width / 8);
  }
  // What reads them would go on behind their end.
  if (seen < count) throw new ParquetDamage('a page has fewer values than it says');
}

/** Five bytes at most: a run has fewer values than a page may have. */
function readVarint(at: { readonly view: DataView; offset: number }): number {
  for (let value = 0, shift = 0; shift < 35; shift += 7) {
    const byte = at.view.getUint8(at.offset++);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value >>> 0;
  }
  throw new ParquetDamage('a run has no length');
}

/** Each value may begin as the one before it, and be longer by a byte: a page could be its square in memory. */
function checkPrefixes(view: DataView, at: number, count: number): void {
  const prefixes = new Int32Array(count);
  deltaBinaryUnpack({ view, offset: at }, count, prefixes);
  let bytes = 0;
  for (const prefix of prefixes) bytes += Math.max(0, prefix);
  if (bytes > MAX_PARQUET_PAGE_BYTES) throw new ParquetDamage('a page unpacks to more than is taken');
}

function bitWidth(value: number): number {
  return 32 - Math.clz32(value);
}
