import { type FileMetaData, parquetMetadata, parquetSchema, type RowGroup } from 'hyparquet';
import { DamagedFile, InputError, inputError } from '../domain/errors.ts';
import { MAX_COLUMNS, MAX_PARQUET_FOOTER_BYTES, PARQUET_READ_AHEAD_BYTES } from '../domain/limits.ts';
import { yielding } from '../yielding.ts';
import { PAGE_HEADER_BYTES } from './parquet-pages.ts';
import { type ColumnShape, HeldPages, openColumn, type ParquetColumn, shapeOf } from './parquet-tree.ts';
import { LineBatch, TypedRows } from './typed-rows.ts';
import { type ReadRange, type WholeFile, WINDOW_BYTES, watched, windowed } from './whole-file.ts';

/*
 * Parquet files as NDJSON. What they hold stands in a footer, so the whole file must be there; then its row groups are read
 * one after another, and of each a page of every column at a time, however large the group is.
 */

/**
 * Yields the rows of the file, a line each. `notes` gets what a person should know, once the last has been read.
 * @throws InputError `unsupported_format` for what is damaged or uses what is not understood here; what `read` throws.
 */
export async function* parquetToNdjson(source: WholeFile, notes: string[] = []): AsyncGenerator<Buffer> {
  const file = watched(source);
  const read = windowed(source.bytes, file.read);
  try {
    const metadata = await readFooter({ bytes: source.bytes, read });
    const { children } = parquetSchema(metadata);
    if (children.length === 0) throw new DamagedFile('it has no columns');
    if (children.length > MAX_COLUMNS) throw new DamagedFile(`more than ${MAX_COLUMNS} columns`);
    const rows = new TypedRows(children.map(({ element }) => element.name));
    const shapes = children.map((child) => shapeOf(child, rows));
    for (const group of metadata.row_groups) {
      const columns = await openColumns(shapes, group, { bytes: source.bytes, read });
      yield* groupLines(rows, columns, Number(group.num_rows));
    }
    notes.push(...rows.notes());
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
  if (tail.toString('latin1', 4) !== MAGIC) throw new DamagedFile('it ends early: it has no footer');
  const length = tail.readUInt32LE(0);
  if (length > MAX_PARQUET_FOOTER_BYTES) throw new DamagedFile(`its footer has ${length} bytes`);
  if (length + TAIL_BYTES + MAGIC.length > bytes) throw new DamagedFile('its footer is longer than the file');
  const footer = new Uint8Array(await read(bytes - TAIL_BYTES - length, bytes));
  return parquetMetadata(footer.buffer, { geoparquet: false });
}

async function openColumns(
  shapes: readonly ColumnShape[],
  group: RowGroup,
  { bytes, read }: { readonly bytes: number; readonly read: ReadRange },
): Promise<ParquetColumn[]> {
  const held = new HeldPages();
  const share = Math.floor(PARQUET_READ_AHEAD_BYTES / group.columns.length);
  const aheadBytes = Math.max(PAGE_HEADER_BYTES, Math.min(WINDOW_BYTES, share));
  const columns: ParquetColumn[] = [];
  let leaf = 0;
  for await (const shape of yielding(shapes)) {
    const chunks = group.columns.slice(leaf, leaf + shape.leaves.length);
    leaf += shape.leaves.length;
    columns.push(openColumn(shape, chunks, { bytes, read, aheadBytes }, held));
  }
  return columns;
}

async function* groupLines(
  rows: TypedRows,
  columns: readonly ParquetColumn[],
  count: number,
): AsyncGenerator<Buffer> {
  const batch = new LineBatch();
  for (let left = count; left > 0; ) {
    for await (const column of yielding(columns.filter((each) => each.rows === 0))) await column.fill();
    const ready = columns.reduce((least, column) => Math.min(least, column.rows), left);
    if (ready === 0) throw new DamagedFile('a column has fewer values than there are rows');
    for await (const lines of yielding(readyLines(rows, columns, ready, batch))) {
      if (lines !== null) yield lines;
    }
    left -= ready;
  }
  const rest = batch.take();
  if (rest !== null) yield rest;
}

const TURN_VALUES = 32 * 1024;

function* readyLines(
  rows: TypedRows,
  columns: readonly ParquetColumn[],
  count: number,
  batch: LineBatch,
): Generator<Buffer | null> {
  const turnRows = Math.ceil(TURN_VALUES / columns.length);
  for (let row = 1; row <= count; row++) {
    const lines = batch.add(rows.line((column) => columns[column]?.read() ?? 'null'));
    if (lines !== null || row % turnRows === 0) yield lines;
  }
}

function damaged(cause: unknown): InputError {
  const what = cause instanceof DamagedFile ? cause.message : 'it cannot be decoded';
  const error = inputError('unsupported_format', `The Parquet file is damaged or not understood: ${what}`);
  return Object.assign(error, { cause });
}
