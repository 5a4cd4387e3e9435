import { crc32 } from 'node:zlib';
import type { ColumnMetaData, Encoding, Statistics } from 'hyparquet';
import { ByteWriter, type SchemaElement } from 'hyparquet-writer';
import { writePageHeader } from 'hyparquet-writer/src/datapage.js';
import { writeRleBitPackedHybrid } from 'hyparquet-writer/src/encoding.js';
import { snappyCompress } from 'hyparquet-writer/src/snappy.js';
import { Fault } from '../../base/errors.ts';
import type { Column } from '../../domain/export.ts';
import { bitsOf, eachText, storeOf, type ValueStore, type Values } from './parquet-values.ts';

// Encodes a column while its values arrive. hyparquet-writer writes the pages, but its encoder
// would copy each value.

export class ParquetColumn {
  readonly name: string;
  readonly #column: Column;
  readonly #element: SchemaElement;
  readonly #store: ValueStore;
  /** Definition level of each row: 1, or 0 if the row has no value. */
  #levels: number[] = [];
  #nulls = 0;

  constructor(column: Column, element: SchemaElement, maxRows: number) {
    this.name = column.name;
    this.#column = column;
    this.#element = element;
    this.#store = storeOf(column, maxRows);
  }

  /**
   * Adds a value. The bytes have the form that COPY writes. If there are no bytes, the value is
   * null, because even an empty string has quotes.
   */
  add(bytes: Buffer, start: number, end: number): void {
    const isNull = end <= start;
    if (isNull && !this.#column.isOptional) throw new Fault(`a row has no ${this.#column.name}`);
    this.#levels.push(isNull ? 0 : 1);
    if (isNull) this.#nulls++;
    else this.#store.add(bytes, start, end);
  }

  /** Writes the column and clears it. Calls `onText` at least once for each distinct string. */
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
      // The minimum and maximum of JSON text are useless to readers.
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

function writeDictionary(writer: ByteWriter, plain: Uint8Array, entries: number): number {
  return writePage(writer, new Uint8Array(), plain, {
    type: 'DICTIONARY_PAGE',
    dictionary_page_header: { num_values: entries, encoding: 'PLAIN' },
  });
}

type PageHeader = Parameters<typeof writePageHeader>[1];

/**
 * Writes a page. Compresses the values, but not the levels. Returns the size before compression.
 */
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

function packIndexes(indexes: Int32Array, entries: number): Uint8Array {
  const page = new ByteWriter();
  page.appendUint8(bitsOf(entries));
  writeRleBitPackedHybrid(page, indexes as never, bitsOf(entries));
  return page.getBytes();
}
