import {
  type ColumnMetaData,
  type FileMetaData,
  type ParquetScan,
  parquetMetadata,
  parquetScan,
  parquetSchema,
  type RowGroup,
} from 'hyparquet';
import { DamagedFile, InputError, inputError } from '../base/errors.ts';
import { MAX_COLUMNS, MiB, READ_BYTES } from '../base/limits.ts';
import { openCodecs } from './parquet-codecs.ts';
import { columnOf, MAX_PARQUET_ROW_CHARS, noCharacter, type ParquetColumn } from './parquet-values.ts';
import { encodeUtf8 } from './utf8.ts';
import { type ReadRange, type WholeFile, WINDOW_BYTES, watched, windowed } from './whole-file.ts';

/** Maximum size of the footer. Maximum packed and unpacked size of a row group. */
const MAX_PARQUET_FOOTER_BYTES = 16 * MiB;
const MAX_PARQUET_GROUP_BYTES = 160 * MiB;
/** Maximum number of values that are unpacked at a time, and their approximate size. */
const PARQUET_SLICE_VALUES = 2 * MiB;
const PARQUET_SLICE_BYTES = 24 * MiB;

/*
 * Converts Parquet to NDJSON with hyparquet. One packed row group is in memory at a time, and its
 * rows are unpacked in slices. Null values are omitted with their keys. If a file states wrong
 * sizes, only the sandbox that parses it is affected.
 */

/**
 * Yields one line per row.
 * @throws InputError `unsupported_format`. Errors from `read` are also thrown.
 */
export async function* parquetToNdjson(source: WholeFile, notes: string[] = []): AsyncGenerator<Buffer> {
  const file = watched(source);
  const read = windowed(source.bytes, file.read);
  const omitted = new OmittedValues();
  try {
    const metadata = await readFooter({ bytes: source.bytes, read });
    const { children } = parquetSchema(metadata);
    if (children.length === 0) throw new DamagedFile('it has no columns');
    if (metadata.schema.length > MAX_COLUMNS) throw new DamagedFile(`more than ${MAX_COLUMNS} columns`);
    const columns = children.map((child) => columnOf(child, () => omitted.add()));
    for (const group of metadata.row_groups) {
      const chunks = await readGroup(columns, group, { bytes: source.bytes, read });
      for await (const values of slicesOf(chunks, group)) yield* linesOf(columns, values, omitted);
    }
    notes.push(...omitted.notes());
  } catch (error) {
    file.rethrowFailure();
    throw error instanceof InputError ? error : damaged(error);
  }
}

const MAGIC = 'PAR1';
const TAIL_BYTES = 8;

async function readFooter({ bytes, read }: WholeFile): Promise<FileMetaData> {
  if (bytes < TAIL_BYTES + MAGIC.length) throw new DamagedFile('it ends early');
  const tail = await read(bytes - TAIL_BYTES, bytes);
  const magic = tail.toString('latin1', 4);
  if (magic === 'PARE') throw new DamagedFile('it is encrypted');
  if (magic !== MAGIC) throw new DamagedFile('it ends early: it has no footer');
  const length = tail.readUInt32LE(0);
  if (length > MAX_PARQUET_FOOTER_BYTES) throw new DamagedFile(`its footer has ${length} bytes`);
  if (length + TAIL_BYTES + MAGIC.length > bytes) throw new DamagedFile('its footer is longer than the file');
  return parquetMetadata(new Uint8Array(await read(bytes - TAIL_BYTES - length, bytes)), {
    geoparquet: false,
  });
}

interface ColumnChunks {
  readonly column: ParquetColumn;
  readonly group: RowGroup;
  readonly start: number;
  readonly packed: ArrayBuffer;
}

/**
 * Reads the packed bytes of a row group.
 * @throws DamagedFile if the group is too large, encrypted or in another file
 */
async function readGroup(
  columns: readonly ParquetColumn[],
  group: RowGroup,
  { bytes, read }: { readonly bytes: number; readonly read: ReadRange },
): Promise<ColumnChunks[]> {
  const leaves = columns.flatMap((column) => column.leaves);
  if (group.columns.length !== leaves.length) throw new DamagedFile('a row group lacks a column');
  const places = group.columns.map((chunk, leaf) => placeOf(chunk, leaves[leaf] ?? ''));
  const packedBytes = places.reduce((sum, { start, end }) => sum + end - start, 0);
  const groupBytes = Math.max(Number(group.total_byte_size), packedBytes);
  if (groupBytes > MAX_PARQUET_GROUP_BYTES) {
    throw new DamagedFile(
      `a row group has ${groupBytes} bytes; at most ${MAX_PARQUET_GROUP_BYTES} are taken. Write smaller row groups`,
    );
  }
  const chunks: ColumnChunks[] = [];
  let leaf = 0;
  for (const column of columns) {
    const parts = places.slice(leaf, leaf + column.leaves.length);
    leaf += column.leaves.length;
    const start = Math.min(...parts.map((part) => part.start));
    const end = Math.max(...parts.map((part) => part.end));
    if (!(start >= MAGIC.length && end <= bytes && end - start <= MAX_PARQUET_GROUP_BYTES)) {
      throw new DamagedFile('a column lies outside of the file');
    }
    const packed = new Uint8Array(end - start);
    for (let at = start; at < end; at += WINDOW_BYTES) {
      packed.set(await read(at, Math.min(end, at + WINDOW_BYTES)), at - start);
    }
    const chunkColumns = parts.map(({ chunk }) => ({ file_offset: 0n, meta_data: chunk }));
    chunks.push({ column, group: { ...group, columns: chunkColumns }, start, packed: packed.buffer });
  }
  return chunks;
}

interface Place {
  readonly start: number;
  readonly end: number;
  readonly chunk: ColumnMetaData;
}

function placeOf(column: RowGroup['columns'][number], leaf: string): Place {
  const { meta_data: chunk, file_path: path, encrypted_column_metadata: encrypted } = column;
  if (chunk === undefined || path !== undefined || encrypted !== undefined || column.crypto_metadata) {
    throw new DamagedFile('its columns are encrypted, or in other files');
  }
  if (chunk.path_in_schema.join('.') !== leaf) {
    throw new DamagedFile('its columns are in another order than its schema');
  }
  const levels = chunk.encodings.filter((encoding) => encoding === 'RLE' || encoding === 'BIT_PACKED');
  if (levels.length > 0 && !levels.includes('RLE')) {
    throw new DamagedFile('its levels are written as BIT_PACKED, which is not read');
  }
  const { dictionary_page_offset: dictionary, data_page_offset: data } = chunk;
  const first = dictionary !== undefined && dictionary > 0n && dictionary < data ? dictionary : data;
  const end = Number(first + chunk.total_compressed_size);
  if (!(end >= Number(first))) throw new DamagedFile('a column lies outside of the file');
  // DuckDB writes unsigned differences with 33 bits. If hyparquet read them as INT32, it would lose
  // the highest bit.
  const isDelta = chunk.encodings.every(
    (encoding) => encoding === 'RLE' || encoding === 'DELTA_BINARY_PACKED',
  );
  const type = isDelta && chunk.type === 'INT32' ? 'INT64' : chunk.type;
  return { start: Number(first), end, chunk: { ...chunk, type, dictionary_page_offset: first } };
}

type Values = Awaited<ReturnType<ParquetScan['readColumn']>>;

async function* slicesOf(
  chunks: readonly ColumnChunks[],
  { num_rows, total_byte_size, columns }: RowGroup,
): AsyncGenerator<readonly Values[]> {
  const rows = Number(num_rows);
  const bySize = rows * (PARQUET_SLICE_BYTES / Math.max(1, Number(total_byte_size)));
  const sliceRows = Math.max(1, Math.floor(Math.min(PARQUET_SLICE_VALUES / columns.length, bySize)));
  const readers: Awaited<ReturnType<typeof openColumn>>[] = [];
  for (const chunk of chunks) readers.push(await openColumn(chunk, rows));
  for (let rowStart = 0; rowStart < rows; rowStart += sliceRows) {
    const rowEnd = Math.min(rows, rowStart + sliceRows);
    const values: Values[] = [];
    for (const reader of readers) values.push(await reader(rowStart, rowEnd));
    if (values.some(({ length }) => length !== rowEnd - rowStart)) {
      throw new DamagedFile('a column has fewer values than there are rows');
    }
    yield values;
  }
}

function* linesOf(
  columns: readonly ParquetColumn[],
  values: readonly Values[],
  omitted: OmittedValues,
): Generator<Buffer> {
  const rows = values[0]?.length ?? 0;
  let lines = '';
  for (let row = 0; row < rows; row++) {
    let line = '';
    omitted.row++;
    for (let index = 0; index < columns.length; index++) {
      const column = columns[index] as ParquetColumn;
      omitted.column = column.name;
      const json = column.toJson(values[index]?.[row]);
      if (json === 'null') continue;
      line += (line === '' ? '' : ',') + column.key + json;
      if (line.length > MAX_PARQUET_ROW_CHARS) throw omitted.tooLarge();
    }
    lines += `{${line}}\n`;
    if (lines.length < READ_BYTES && row + 1 < rows) continue;
    yield encodeUtf8(lines, noCharacter);
    lines = '';
  }
}

/** Returns the reader of a range of rows. Lists and structs can only be unpacked as a whole. */
async function openColumn({ column, group, start, packed }: ColumnChunks, rows: number) {
  const { name, schema, parsers, isNested } = column;
  const scan = await parquetScan({
    file: {
      byteLength: start + packed.byteLength,
      slice: (from, to = start + packed.byteLength) =>
        from === start && to === start + packed.byteLength ? packed : packed.slice(from - start, to - start),
    },
    metadata: { version: 2, metadata_length: 0, schema, num_rows: group.num_rows, row_groups: [group] },
    utf8: false,
    useOffsetIndex: false,
    compressors: await openCodecs(group.columns.map(({ meta_data: chunk }) => chunk?.codec ?? '')),
    parsers,
  });
  // Later reads return slices of this result.
  if (isNested) await scan.readColumn({ column: name, rowStart: 0, rowEnd: rows });
  return (rowStart: number, rowEnd: number) => scan.readColumn({ column: name, rowStart, rowEnd });
}

/** Counts values that are omitted. `row` and `column` are the place of the current value. */
class OmittedValues {
  row = 0;
  column = '';
  #count = 0;
  #first = '';

  add(): string {
    if (this.#count++ === 0) this.#first = this.#place();
    return 'null';
  }

  notes(): string[] {
    if (this.#count === 0) return [];
    const what = this.#count === 1 ? '1 value was' : `${this.#count} values were`;
    return [
      `${what} left out that JSON cannot hold (NaN, an infinity, a time beyond 24 hours), the first in ${this.#first}.`,
    ];
  }

  tooLarge(): DamagedFile {
    return new DamagedFile(
      `${this.#place()} brings the row to more than ${MAX_PARQUET_ROW_CHARS} characters, which no record may have`,
    );
  }

  #place(): string {
    return `row ${this.row}, column ${JSON.stringify(this.column.slice(0, 100))}`;
  }
}

function damaged(cause: unknown): InputError {
  const what = cause instanceof DamagedFile ? cause.message : 'it cannot be decoded';
  const error = inputError('unsupported_format', `The Parquet file is damaged or not understood: ${what}`);
  return Object.assign(error, { cause });
}
