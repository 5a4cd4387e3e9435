import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { type ColumnMetaData, type PageHeader, type RowGroup, snappyUncompress } from 'hyparquet';
import { parquetHeader } from 'hyparquet/src/column.js';
import { DamagedFile } from '../domain/errors.ts';
import { MAX_PARQUET_PAGE_BYTES, MAX_PARQUET_PAGE_VALUES } from '../domain/limits.ts';
import { openZstd } from './decompress.ts';
import type { ParquetLeaf } from './parquet-columns.ts';
import { Dictionary, type NextValue, openValues, Runs } from './parquet-values.ts';
import { type ReadRange, windowed } from './whole-file.ts';

/*
 * Reads the pages of one column of a row group, one at a time. A page is unpacked within a bound and its values are read in
 * place, so nothing that it declares, such as a run of a thousand million values, is allocated.
 */

/** A page has `entries`, each with levels that say which list it goes on and whether it has a value. */
export interface ParquetPage {
  readonly entries: number;
  readonly rows: number;
  readonly heldBytes: number;
  /** The levels; null if all are the same. */
  readonly repetition: Runs | null;
  readonly definition: Runs | null;
  readonly next: NextValue;
}

/** A header has statistics, which may hold two values of the column. */
export const PAGE_HEADER_BYTES = 8 * 1024;
const MAX_PAGE_HEADER_BYTES = 4 * 1024 * 1024;
const PAGE_OBJECT_BYTES = 1024;

/** The bytes that are read ahead for a column, and their position. */
export interface PageSource {
  readonly bytes: number;
  readonly read: ReadRange;
  readonly aheadBytes: number;
}

export class ParquetPages {
  readonly #leaf: ParquetLeaf;
  readonly #codec: string;
  readonly #read: ReadRange;
  readonly #end: number;
  #at: number;
  #dictionary: Dictionary | null = null;
  #unpack: UnpackPage | null = null;

  constructor(
    leaf: ParquetLeaf,
    column: RowGroup['columns'][number],
    { bytes, read, aheadBytes }: PageSource,
  ) {
    const chunk = chunkOf(column);
    if (chunk.path_in_schema.join('.') !== leaf.path)
      throw new DamagedFile('its columns are in another order than its schema');
    this.#leaf = leaf;
    this.#codec = chunk.codec;
    const { dictionary_page_offset: dictionary, data_page_offset: data } = chunk;
    this.#at = Number(dictionary !== undefined && dictionary > 0n && dictionary < data ? dictionary : data);
    this.#end = this.#at + Number(chunk.total_compressed_size);
    if (!(this.#at >= 4 && this.#end >= this.#at && this.#end <= bytes)) {
      throw new DamagedFile('a column lies outside of the file');
    }
    // Copied, since a view would make each column hold the whole read-ahead buffer.
    const copied: ReadRange = async (start, end) => Buffer.from(await read(start, end));
    this.#read = windowed(this.#end, copied, aheadBytes);
  }

  /** The bytes of its dictionary, which stays in memory. */
  get heldBytes(): number {
    return this.#dictionary?.heldBytes ?? 0;
  }

  async next(): Promise<ParquetPage | null> {
    while (this.#at < this.#end) {
      const { header, headerBytes } = await this.#readHeader();
      const start = this.#at + headerBytes;
      const length = header.compressed_page_size;
      checkPageBytes(length);
      if (start + length > this.#end) throw new DamagedFile('a page is longer than its column');
      this.#at = start + length;
      if (header.type === 'INDEX_PAGE') continue;
      // Needs separate memory, because views of it begin at its beginning.
      const packed = new Uint8Array(await this.#read(start, start + length));
      this.#unpack ??= await openCodec(this.#codec);
      if (header.type === 'DICTIONARY_PAGE') this.#readDictionary(header, packed, this.#unpack);
      else {
        const page = this.#open(header, packed, this.#unpack);
        if (page.entries > 0) return page;
      }
    }
    return null;
  }

  async #readHeader(): Promise<{ header: PageHeader; headerBytes: number }> {
    for (let size = PAGE_HEADER_BYTES; ; size *= 8) {
      const end = Math.min(this.#end, this.#at + size);
      const bytes = new Uint8Array(await this.#read(this.#at, end));
      const reader = { view: new DataView(bytes.buffer), offset: 0 };
      try {
        return { header: parquetHeader(reader), headerBytes: reader.offset };
      } catch (error) {
        if (end === this.#end || size > MAX_PAGE_HEADER_BYTES) throw error;
      }
    }
  }

  #readDictionary(header: PageHeader, packed: Uint8Array, unpack: UnpackPage): void {
    const count = header.dictionary_page_header?.num_values ?? -1;
    checkCount(count);
    this.#dictionary = new Dictionary(this.#leaf, unpack(packed, header.uncompressed_page_size), count);
  }

  #open(header: PageHeader, packed: Uint8Array, unpack: UnpackPage): ParquetPage {
    const { data_page_header: v1, data_page_header_v2: v2, uncompressed_page_size: size } = header;
    const { maxDefinition, maxRepetition } = this.#leaf;
    if (v1 !== undefined) {
      checkCount(v1.num_values);
      const bytes = unpack(packed, size);
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const lengthAt = (at: number) => view.getUint32(at, true);
      const usesBits = [
        maxRepetition > 0 && v1.repetition_level_encoding,
        maxDefinition > 0 && v1.definition_level_encoding,
      ].includes('BIT_PACKED');
      if (usesBits) throw new DamagedFile('its levels are written as BIT_PACKED, which is not read');
      // Each list of levels is preceded by its length.
      const repetition = maxRepetition > 0 ? { at: 4, length: lengthAt(0) } : { at: 0, length: 0 };
      const after = repetition.at + repetition.length;
      const definition =
        maxDefinition > 0 ? { at: after + 4, length: lengthAt(after) } : { at: after, length: 0 };
      return this.#assemble(bytes, { entries: v1.num_values, encoding: v1.encoding, repetition, definition });
    }
    if (v2 === undefined) throw new DamagedFile(`a page of an unknown kind, ${header.type}`);
    checkCount(v2.num_values);
    const repetition = { at: 0, length: v2.repetition_levels_byte_length };
    const definition = { at: repetition.length, length: v2.definition_levels_byte_length };
    const bytes = unpackV2(
      packed,
      { size, levels: definition.at + definition.length },
      v2.is_compressed === false ? null : unpack,
    );
    return this.#assemble(bytes, { entries: v2.num_values, encoding: v2.encoding, repetition, definition });
  }

  #assemble(bytes: Uint8Array, { entries, encoding, repetition, definition }: PageLayout): ParquetPage {
    const { maxDefinition, maxRepetition } = this.#leaf;
    const levels = (place: Section, max: number) =>
      max === 0 ? null : new Runs(bytes, place.at, place.at + place.length, bitWidth(max));
    const at = definition.at + definition.length;
    const dictionary = this.#dictionary;
    const values = openValues(this.#leaf, { bytes, at, encoding, count: entries, dictionary });
    return {
      entries,
      rows: maxRepetition === 0 ? entries : countRows(levels(repetition, maxRepetition), entries),
      heldBytes: bytes.length + values.heldBytes + PAGE_OBJECT_BYTES,
      repetition: levels(repetition, maxRepetition),
      definition: levels(definition, maxDefinition),
      next: values.next,
    };
  }
}

interface Section {
  readonly at: number;
  readonly length: number;
}

interface PageLayout {
  readonly entries: number;
  readonly encoding: string;
  readonly repetition: Section;
  readonly definition: Section;
}

function checkCount(count: number): void {
  if (count >= 0 && count <= MAX_PARQUET_PAGE_VALUES) return;
  throw new DamagedFile(`a page of ${count} values; at most ${MAX_PARQUET_PAGE_VALUES} are taken`);
}

/** Cuts off the levels of a page of version 2, which are never packed. */
function unpackV2(
  packed: Uint8Array,
  { size, levels }: { readonly size: number; readonly levels: number },
  unpack: UnpackPage | null,
): Uint8Array {
  checkPageBytes(size);
  if (!(levels >= 0 && levels <= packed.length && levels <= size)) {
    throw new DamagedFile('a page is shorter than its levels');
  }
  if (unpack === null) return packed;
  const whole = new Uint8Array(size);
  whole.set(packed.subarray(0, levels));
  whole.set(unpack(packed.subarray(levels), size - levels), levels);
  return whole;
}

/** Counts the rows that begin; a row begins where no list continues. */
function countRows(repetition: Runs | null, entries: number): number {
  let rows = 0;
  for (let entry = 0; entry < entries; entry++) if (repetition?.next() === 0) rows++;
  return rows;
}

function bitWidth(level: number): number {
  return 32 - Math.clz32(level);
}

/** @throws DamagedFile for a column that is encrypted or lies in another file. */
function chunkOf(column: RowGroup['columns'][number]): ColumnMetaData {
  const { meta_data: chunk, file_path: path, encrypted_column_metadata: encrypted } = column;
  if (chunk === undefined || path !== undefined || encrypted !== undefined) {
    throw new DamagedFile('its columns are encrypted, or in other files');
  }
  return chunk;
}

/** Unpacks a page into a new buffer of exactly that many bytes. Throws if it unpacks to any other number. */
type UnpackPage = (packed: Uint8Array, bytes: number) => Uint8Array;

/** The decoders. None of them writes more than `bytes`, whatever the page contains. */
const codecs: ReadonlyMap<string, UnpackPage> = new Map<string, UnpackPage>([
  ['UNCOMPRESSED', (packed) => packed],
  ['SNAPPY', unpackSnappy],
  ['GZIP', (packed, bytes) => new Uint8Array(gunzipSync(packed, { maxOutputLength: Math.max(1, bytes) }))],
  [
    'BROTLI',
    (packed, bytes) => new Uint8Array(brotliDecompressSync(packed, { maxOutputLength: Math.max(1, bytes) })),
  ],
  ['LZ4_RAW', unpackLz4],
  ['LZ4', (packed, bytes) => unpackHadoopLz4(packed, bytes) ?? unpackLz4(packed, bytes)],
]);

export async function openCodec(name: string): Promise<UnpackPage> {
  const unpack = name === 'ZSTD' ? await openZstd() : codecs.get(name);
  if (unpack === undefined) {
    throw new DamagedFile(
      `it is packed with ${name}; write it with ZSTD, Snappy, LZ4_RAW, gzip, Brotli or none`,
    );
  }
  return (packed, bytes) => {
    checkPageBytes(bytes);
    if (bytes === 0) return new Uint8Array(0);
    const plain = unpack(packed, bytes);
    if (plain.length !== bytes) throw new DamagedFile('a page has another length than it says');
    return plain;
  };
}

function checkPageBytes(bytes: number): void {
  if (bytes >= 0 && bytes <= MAX_PARQUET_PAGE_BYTES) return;
  throw new DamagedFile(`a page of ${bytes} bytes; at most ${MAX_PARQUET_PAGE_BYTES} are taken`);
}

function unpackSnappy(packed: Uint8Array, bytes: number): Uint8Array {
  const plain = new Uint8Array(bytes);
  snappyUncompress(packed, plain);
  return plain;
}

/** Unpacks Hadoop's LZ4: blocks, each preceded by two lengths. Returns `null` if the page is a block without them. */
function unpackHadoopLz4(packed: Uint8Array, bytes: number): Uint8Array | null {
  const plain = new Uint8Array(bytes);
  const view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength);
  let [from, to] = [0, 0];
  while (from < packed.length) {
    if (from + 8 > packed.length) return null;
    const [long, short] = [view.getUint32(from), view.getUint32(from + 4)];
    from += 8;
    if (from + short > packed.length || to + long > bytes) return null;
    plain.set(unpackLz4(packed.subarray(from, from + short), long), to);
    from += short;
    to += long;
  }
  return plain.subarray(0, to);
}

/** Unpacks a block of LZ4. The decoders on npm leave zeros for values if a block ends early. */
function unpackLz4(packed: Uint8Array, bytes: number): Uint8Array {
  const plain = new Uint8Array(bytes);
  let [from, to] = [0, 0];
  const length = (nibble: number): number => {
    let sum = nibble;
    for (let more = nibble === 15 ? 255 : 0; more === 255; sum += more) {
      if (from >= packed.length) throw wrongLz4();
      more = packed[from++] ?? 0;
    }
    return sum;
  };
  while (from < packed.length) {
    const token = packed[from++] ?? 0;
    const literals = length(token >>> 4);
    if (from + literals > packed.length || to + literals > bytes) throw wrongLz4();
    plain.set(packed.subarray(from, from + literals), to);
    from += literals;
    to += literals;
    // The last sequence has no match.
    if (from === packed.length) return plain.subarray(0, to);
    const distance = (packed[from] ?? 0) | ((packed[from + 1] ?? 0) << 8);
    from += 2;
    const end = to + length(token & 15) + 4;
    if (distance === 0 || distance > to || end > bytes) throw wrongLz4();
    if (distance >= end - to) plain.copyWithin(to, to - distance, end - distance);
    else for (let at = to; at < end; at++) plain[at] = plain[at - distance] ?? 0;
    to = end;
  }
  throw wrongLz4();
}

function wrongLz4(): DamagedFile {
  return new DamagedFile('a page is not LZ4');
}
