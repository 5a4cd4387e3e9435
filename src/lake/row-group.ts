import { type ColumnMetaData, type RowGroup, snappyUncompress } from 'hyparquet';
import { parquetHeader } from 'hyparquet/src/column.js';
import { readRleBitPackedHybrid } from 'hyparquet/src/encoding.js';
import { Fault } from '../domain/errors.ts';

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

/** A row group, unpacked column by column as they are asked for. Pages are as `ParquetColumn` writes them: one of values to a column. */
export class LakeGroup {
  readonly rows: number;
  readonly #columns: ReadonlyMap<string, ColumnMetaData>;
  readonly #bytes: Buffer;
  readonly #start: number;
  readonly #texts = new Map<string, Texts>();
  #micros: Float64Array | null = null;

  /** `bytes` are those of the file from `start` on. */
  constructor({ num_rows, columns }: RowGroup, bytes: Buffer, start: number) {
    this.rows = Number(num_rows);
    // A property may have a column of the same name, after ours.
    const found = columns.flatMap(({ meta_data: of }) =>
      of ? [[of.path_in_schema[0] ?? '', of] as const] : [],
    );
    this.#columns = new Map(found.reverse());
    this.#bytes = bytes;
    this.#start = start;
  }

  texts(name: string): Texts {
    const known = this.#texts.get(name);
    if (known !== undefined) return known;
    const texts = this.#unpackTexts(this.#chunk(name));
    this.#texts.set(name, texts);
    return texts;
  }

  /** The times of the events, in microseconds since 1970. */
  get micros(): Float64Array {
    if (this.#micros !== null) return this.#micros;
    const { values } = this.#page(Number(this.#chunk('inserted_at').data_page_offset), this.rows);
    this.#micros = new Float64Array(this.rows);
    for (let row = 0; row < this.rows; row++) {
      this.#micros[row] = values.readUInt32LE(8 * row) + values.readInt32LE(8 * row + 4) * 2 ** 32;
    }
    return this.#micros;
  }

  text(name: string, row: number): string | null {
    const { memory, starts, ends, places } = this.texts(name);
    const place = places[row] as number;
    return place === -1 ? null : memory.toString('utf8', starts[place], ends[place]);
  }

  /** A column as it is stored. */
  packed(name: string): { readonly about: ColumnMetaData; readonly bytes: Buffer } {
    const about = this.#chunk(name);
    const at = startOf(about) - this.#start;
    return { about, bytes: this.#bytes.subarray(at, at + Number(about.total_compressed_size)) };
  }

  event(row: number): LakeEvent {
    const text = (name: string) => this.text(name, row) ?? '';
    return {
      ...{ event_id: text('event_id'), event_type: text('event_type'), event_name: text('event_name') },
      ...{ user_id: text('user_id'), company_id: this.text('company_id', row), source: text('source') },
      ...{ micros: this.micros[row] as number, metadata: text('metadata') },
    };
  }

  events(): LakeEvent[] {
    return Array.from({ length: this.rows }, (_, row) => this.event(row));
  }

  #chunk(name: string): ColumnMetaData {
    const chunk = this.#columns.get(name);
    if (chunk === undefined) throw new Fault(`a file of the lake has no column ${name}`);
    return chunk;
  }

  #unpackTexts({ dictionary_page_offset: dictionary, data_page_offset: data }: ColumnMetaData): Texts {
    const { values, nulls, levels } = this.#page(Number(data), this.rows);
    const places = new Int32Array(this.rows - nulls);
    if (dictionary === undefined) {
      for (let row = 0; row < places.length; row++) places[row] = row;
      return { ...findTexts(values, places.length), places: spread(places, levels, this.rows) };
    }
    const width = values[0] as number;
    if (width > 0) readRleBitPackedHybrid(readerOf(values, 1), width, places, values.length - 1);
    const { values: texts, count } = this.#page(Number(dictionary), null);
    return { ...findTexts(texts, count), places: spread(places, levels, this.rows) };
  }

  /** Unpacks a page: of so many rows, or, where that is null, of a dictionary. */
  #page(offset: number, rows: number | null) {
    const at = offset - this.#start;
    const reader = readerOf(this.#bytes, at);
    const header = parquetHeader(reader);
    const page = header.data_page_header_v2;
    const count = page?.num_values ?? header.dictionary_page_header?.num_values;
    if (count === undefined || (rows !== null && (page === undefined || count !== rows)))
      throw new Fault('a file of the lake has other pages than sluice writes');
    const levels = page?.definition_levels_byte_length ?? 0;
    const start = reader.offset + levels;
    const values = Buffer.allocUnsafeSlow(header.uncompressed_page_size - levels);
    if (values.length > 0)
      snappyUncompress(this.#bytes.subarray(start, reader.offset + header.compressed_page_size), values);
    return {
      ...{ values, count, nulls: page?.num_nulls ?? 0 },
      levels: levels === 0 ? null : this.#bytes.subarray(reader.offset, start),
    };
  }
}

export function startOf({ dictionary_page_offset, data_page_offset }: ColumnMetaData): number {
  return Number(dictionary_page_offset ?? data_page_offset);
}

function readerOf(bytes: Buffer, offset: number) {
  return { view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), offset };
}

/** Finds texts that lie one after another, each behind its length. */
function findTexts(memory: Buffer, count: number): Omit<Texts, 'places'> {
  const [starts, ends] = [new Int32Array(count), new Int32Array(count)];
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
function spread(places: Int32Array, levels: Buffer | null, rows: number): Int32Array {
  if (places.length === rows || levels === null) return places;
  const all = new Int32Array(rows);
  readRleBitPackedHybrid(readerOf(levels, 0), 1, all, levels.length);
  let next = 0;
  for (let row = 0; row < rows; row++) all[row] = all[row] === 0 ? -1 : (places[next++] as number);
  return all;
}
