import { crc32 } from 'node:zlib';
import { type ColumnMetaData, type RowGroup, snappyUncompress } from 'hyparquet';
import { parquetHeader } from 'hyparquet/src/column.js';
import { readRleBitPackedHybrid } from 'hyparquet/src/encoding.js';
import { Fault } from '../domain/errors.ts';
import { type FileRef, LostLakeFile } from '../files/file-store.ts';

export interface LakeEvent {
  readonly event_id: string;
  readonly event_type: string;
  readonly event_name: string;
  readonly user_id: string;
  readonly company_id: string | null;
  readonly source: string;
  /** Microseconds since 1970. */
  readonly micros: number;
  /** JSON, as PostgreSQL wrote it. */
  readonly metadata: string;
}

/** The texts of a column, in the order of rows or each once, and where that of each row is. */
export interface Texts {
  readonly memory: Buffer;
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  /** For each row the number of its text; -1: it has none. */
  readonly places: Int32Array;
}

/** Memory for what is unpacked. What a row group gives back is used again: to leave it to the collector costs a hundred megabytes. */
export class PageMemory {
  readonly #free = new Map<number, Buffer[]>();

  /** Returns memory that is not cleared. */
  take(length: number): Buffer {
    const size = 2 ** Math.ceil(Math.log2(Math.max(length, leastBytes)));
    return (this.#free.get(size)?.pop() ?? Buffer.allocUnsafeSlow(size)).subarray(0, length);
  }

  give(taken: Buffer): void {
    const whole = Buffer.from(taken.buffer);
    const free = this.#free.get(whole.length);
    if (free === undefined) this.#free.set(whole.length, [whole]);
    else free.push(whole);
  }
}

const leastBytes = 1024;

interface StoredGroup {
  readonly ref: FileRef;
  /** The bytes of the file from `start` on. */
  readonly bytes: Buffer;
  readonly start: number;
  readonly memory: PageMemory;
  /** The sum of its rows (`ContentHash`); null: it is not known. */
  readonly sum: Buffer | null;
  /** By column. */
  readonly fieldIds: readonly (number | undefined)[];
}

/** The columns that all events have; those of properties come after them. */
const ownColumns = 8;

/**
 * A row group, unpacked column by column as they are asked for. Pages are as `ParquetColumn` writes them: one of values to a column. Bytes
 * that are not those that were written make whatever asks for them throw `LostLakeFile`.
 */
export class LakeGroup {
  readonly rows: number;
  readonly #columns: readonly ColumnMetaData[];
  readonly #stored: StoredGroup;
  readonly #texts = new Map<string, Texts>();
  readonly #taken: Buffer[] = [];
  #micros: Float64Array | null = null;

  constructor({ num_rows, columns }: RowGroup, stored: StoredGroup) {
    this.rows = Number(num_rows);
    this.#columns = columns.flatMap(({ meta_data }) => meta_data ?? []);
    this.#stored = stored;
  }

  get sum(): Buffer | null {
    return this.#stored.sum;
  }

  /** Tells whether its columns are ours and those of the fields, maybe with others after them. */
  hasFields(fields: readonly { readonly id: number }[]): boolean {
    const ids = this.#stored.fieldIds.slice(ownColumns);
    return fields.every(({ id }, at) => id === ids[at]);
  }

  texts(name: string): Texts {
    const known = this.#texts.get(name);
    if (known !== undefined) return known;
    const texts = this.#read(() => this.#unpackTexts(this.#chunk(name)));
    this.#texts.set(name, texts);
    return texts;
  }

  /** The times of the events, in microseconds since 1970. */
  get micros(): Float64Array {
    this.#micros ??= this.#read(() => this.#unpackMicros());
    return this.#micros;
  }

  /** Gives its memory to the groups after it. Nothing of it may be asked for any more. */
  release(): void {
    for (const taken of this.#taken.splice(0)) this.#stored.memory.give(taken);
  }

  #take(length: number): Buffer {
    const taken = this.#stored.memory.take(length);
    this.#taken.push(taken);
    return taken;
  }

  #integers(count: number): Int32Array {
    return new Int32Array(this.#take(4 * count).buffer, 0, count);
  }

  text(name: string, row: number): string | null {
    const { memory, starts, ends, places } = this.texts(name);
    const place = places[row] as number;
    return place === -1 ? null : memory.toString('utf8', starts[place], ends[place]);
  }

  /** Returns a column, by its place, as it is stored. */
  packed(place: number): { readonly about: ColumnMetaData; readonly bytes: Buffer } {
    const about = this.#columns[place] as ColumnMetaData;
    const { dictionary_page_offset: dictionary, data_page_offset: data } = about;
    this.#read(() => [dictionary, data].map((page) => page !== undefined && this.#open(Number(page))));
    const at = startOf(about) - this.#stored.start;
    return { about, bytes: this.#stored.bytes.subarray(at, at + Number(about.total_compressed_size)) };
  }

  event(row: number): LakeEvent {
    const text = (name: string) => this.text(name, row) ?? '';
    return {
      ...{ event_id: text('event_id'), event_type: text('event_type'), event_name: text('event_name') },
      ...{ user_id: text('user_id'), company_id: this.text('company_id', row), source: text('source') },
      ...{ micros: this.micros[row] as number, metadata: text('metadata') },
    };
  }

  #read<T>(read: () => T): T {
    try {
      return read();
    } catch (cause) {
      throw new LostLakeFile(this.#stored.ref, cause);
    }
  }

  #chunk(name: string): ColumnMetaData {
    // A property may have a column of the same name, after ours.
    const chunk = this.#columns.find(({ path_in_schema: [found] }) => found === name);
    if (chunk === undefined) throw new Fault(`a file of the lake has no column ${name}`);
    return chunk;
  }

  #unpackMicros(): Float64Array {
    const { values } = this.#page(Number(this.#chunk('inserted_at').data_page_offset), this.rows);
    const micros = new Float64Array(this.#take(8 * this.rows).buffer, 0, this.rows);
    for (let row = 0; row < this.rows; row++) {
      micros[row] = values.readUInt32LE(8 * row) + values.readInt32LE(8 * row + 4) * 2 ** 32;
    }
    return micros;
  }

  #unpackTexts({ dictionary_page_offset: dictionary, data_page_offset: data }: ColumnMetaData): Texts {
    const { values, nulls, levels } = this.#page(Number(data), this.rows);
    const places = this.#integers(this.rows - nulls);
    if (dictionary === undefined) {
      for (let row = 0; row < places.length; row++) places[row] = row;
      return { ...this.#findTexts(values, places.length), places: this.#spread(places, levels) };
    }
    const width = values[0] as number;
    if (width > 0) readRleBitPackedHybrid(readerOf(values, 1), width, places, values.length - 1);
    else places.fill(0);
    const { values: texts, count } = this.#page(Number(dictionary), null);
    return { ...this.#findTexts(texts, count), places: this.#spread(places, levels) };
  }

  /** Finds texts that lie one after another, each behind its length. */
  #findTexts(memory: Buffer, count: number): Omit<Texts, 'places'> {
    const [starts, ends] = [this.#integers(count), this.#integers(count)];
    let at = 0;
    for (let text = 0; text < count; text++) {
      const start = at + 4;
      at = start + memory.readInt32LE(at);
      starts[text] = start;
      ends[text] = at;
    }
    if (at > memory.length) throw new Fault('a page of the lake is shorter than its values');
    return { memory, starts, ends };
  }

  /** Spreads what rows with a value have over all rows. `levels`: 1 for each row that has one; null: all do. */
  #spread(places: Int32Array, levels: Buffer | null): Int32Array {
    if (places.length === this.rows || levels === null) return places;
    const all = this.#integers(this.rows);
    readRleBitPackedHybrid(readerOf(levels, 0), 1, all, levels.length);
    let next = 0;
    for (let row = 0; row < this.rows; row++) all[row] = all[row] === 0 ? -1 : (places[next++] as number);
    return all;
  }

  /** Finds a page whose bytes are those that were written. */
  #open(offset: number) {
    const { bytes, start } = this.#stored;
    const reader = readerOf(bytes, offset - start);
    const header = parquetHeader(reader);
    const stored = bytes.subarray(reader.offset, reader.offset + header.compressed_page_size);
    if (header.crc !== undefined && header.crc !== (crc32(stored) | 0))
      throw new Fault('a page of the lake has another checksum than it says');
    return { header, stored };
  }

  /** Unpacks a page: of so many rows, or, where that is null, of a dictionary. */
  #page(offset: number, rows: number | null) {
    const { header, stored } = this.#open(offset);
    const page = header.data_page_header_v2;
    const count = page?.num_values ?? header.dictionary_page_header?.num_values;
    if (count === undefined || (rows !== null && (page === undefined || count !== rows)))
      throw new Fault('a file of the lake has other pages than sluice writes');
    const levels = page?.definition_levels_byte_length ?? 0;
    const values = this.#take(header.uncompressed_page_size - levels);
    if (values.length > 0) snappyUncompress(stored.subarray(levels), values);
    return {
      ...{ values, count, nulls: page?.num_nulls ?? 0 },
      levels: levels === 0 ? null : stored.subarray(0, levels),
    };
  }
}

export function startOf({ dictionary_page_offset, data_page_offset }: ColumnMetaData): number {
  return Number(dictionary_page_offset ?? data_page_offset);
}

function readerOf(bytes: Buffer, offset: number) {
  return { view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), offset };
}
