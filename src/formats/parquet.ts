import {
  type ColumnMetaData,
  type DecodedArray,
  type FileMetaData,
  parquetMetadata,
  parquetSchema,
  type RowGroup,
  type SchemaTree,
} from 'hyparquet';
import { assembleNested } from 'hyparquet/src/assemble.js';
import { DEFAULT_PARSERS } from 'hyparquet/src/convert.js';
import { getTreePath, isFlatColumn } from 'hyparquet/src/schema.js';
import { InputError, inputError } from '../domain/errors.ts';
import {
  MAX_COLUMNS,
  MAX_PARQUET_FOOTER_BYTES,
  MAX_PARQUET_HELD_BYTES,
  MAX_PARQUET_PAGE_VALUES,
  MAX_PARSED_DEPTH,
} from '../domain/limits.ts';
import { leafOf, type ParquetLeaf, parsers } from './parquet-columns.ts';
import { ParquetDamage, ParquetPages } from './parquet-pages.ts';
import { LineBatch, TypedRows, type TypedValue } from './typed-rows.ts';
import { type WholeFile, watched, windowed } from './whole-file.ts';

/*
 * Parquet files as NDJSON. What they hold stands in a footer, so the whole file must be there; then its row groups are read
 * one after another, and of each a page of every column at a time, however large the group is. Columns with lists, maps or
 * structs in them are the exception: of those a row group is held whole, within a bound.
 */

/**
 * The rows of the file, a line each.
 * @throws InputError `unsupported_format` for what is damaged or uses what is not understood here; what `read` throws.
 */
export async function* parquetToNdjson(source: WholeFile): AsyncGenerator<Buffer> {
  const file = watched(source);
  const read = windowed(source.bytes, file.read);
  try {
    const metadata = await readFooter({ bytes: source.bytes, read });
    const schema = parquetSchema(metadata);
    if (schema.children.length === 0) throw new ParquetDamage('it has no columns');
    if (schema.children.length > MAX_COLUMNS) throw new ParquetDamage(`more than ${MAX_COLUMNS} columns`);
    const rows = new TypedRows(schema.children.map(({ element }) => element.name));
    for (const group of metadata.row_groups) {
      yield* groupRows(rows, schema, group, { bytes: source.bytes, read });
    }
  } catch (error) {
    file.rethrowFailure();
    throw error instanceof InputError ? error : damaged(error);
  }
}

const MAGIC = 'PAR1';
/** Length of the footer, and the magic again. */
const TAIL_BYTES = 8;

async function readFooter({ bytes, read }: WholeFile): Promise<FileMetaData> {
  if (bytes < TAIL_BYTES + MAGIC.length) throw new ParquetDamage('it ends early');
  const tail = await read(bytes - TAIL_BYTES, bytes);
  if (tail.toString('latin1', 4) !== MAGIC) throw new ParquetDamage('it ends early: it has no footer');
  const length = tail.readUInt32LE(0);
  if (length > MAX_PARQUET_FOOTER_BYTES) throw new ParquetDamage(`its footer has ${length} bytes`);
  if (length + TAIL_BYTES + MAGIC.length > bytes)
    throw new ParquetDamage('its footer is longer than the file');
  const footer = new Uint8Array(await read(bytes - TAIL_BYTES - length, bytes));
  return parquetMetadata(footer.buffer, { geoparquet: false });
}

async function* groupRows(
  rows: TypedRows,
  schema: SchemaTree,
  group: RowGroup,
  source: WholeFile,
): AsyncGenerator<Buffer> {
  const columns = schema.children.map((child) => openColumn(schema, child, group, source));
  const batch = new LineBatch();
  for (let left = Number(group.num_rows); left > 0; ) {
    let ready = left;
    let held = 0;
    for (const column of columns) {
      ready = Math.min(ready, await column.fill());
      held += column.heldBytes;
    }
    if (ready === 0) throw new ParquetDamage('a column has fewer values than there are rows');
    if (held > MAX_PARQUET_HELD_BYTES) throw new ParquetDamage('its pages are too large');
    for (let row = 0; row < ready; row++) {
      const text = batch.add(rows.line((column) => columns[column]?.take()));
      if (text !== null) yield text;
    }
    left -= ready;
  }
  const rest = batch.take();
  if (rest !== null) yield rest;
}

/** The values of a top-level column, row by row. */
interface OpenColumn {
  readonly heldBytes: number;
  /** Rows that can be taken: none only after the last. */
  fill(): Promise<number>;
  take(): TypedValue;
}

function openColumn(schema: SchemaTree, child: SchemaTree, group: RowGroup, source: WholeFile): OpenColumn {
  const leaves = group.columns.flatMap(({ meta_data: chunk, file_path: path, ...encryption }) => {
    if (chunk === undefined || path !== undefined || encryption.encrypted_column_metadata !== undefined) {
      throw new ParquetDamage('its columns are encrypted, or in other files');
    }
    return chunk.path_in_schema[0] === child.element.name ? [openLeaf(schema, chunk)] : [];
  });
  const pages = leaves.map((leaf) => new ParquetPages(leaf, leaf.chunk, source.bytes, source.read));
  const [first] = leaves;
  const [only] = pages;
  if (first === undefined || only === undefined) throw new ParquetDamage('a row group lacks a column');
  if (isFlatColumn([...first.schemaPath])) return new FlatColumn(only, first.toValue);
  return new NestedColumn(child, leaves, pages);
}

function openLeaf(schema: SchemaTree, chunk: ColumnMetaData): ParquetLeaf {
  const path = getTreePath(schema, chunk.path_in_schema);
  if (path.length > MAX_PARSED_DEPTH) throw new ParquetDamage('its schema is nested too deeply');
  if (path.some(({ element }) => element.logical_type?.type === 'VARIANT')) {
    throw new ParquetDamage('columns of VARIANT are not read');
  }
  return leafOf(chunk, path);
}

class FlatColumn implements OpenColumn {
  readonly #pages: ParquetPages;
  readonly #toValue: ParquetLeaf['toValue'];
  #values: DecodedArray = [];
  #at = 0;

  constructor(pages: ParquetPages, toValue: ParquetLeaf['toValue']) {
    this.#pages = pages;
    this.#toValue = toValue;
  }

  get heldBytes(): number {
    return this.#pages.heldBytes;
  }

  async fill(): Promise<number> {
    while (this.#at === this.#values.length) {
      const values = await this.#pages.next(undefined);
      if (values === null) return 0;
      this.#values = values;
      this.#at = 0;
    }
    return this.#values.length - this.#at;
  }

  take(): TypedValue {
    const value: unknown = this.#values[this.#at++];
    return this.#toValue === null ? (value as TypedValue) : this.#toValue(value);
  }
}

/** All of a row group: a row may go on in the next page, and each leaf has pages of its own. */
class NestedColumn implements OpenColumn {
  heldBytes = 0;
  readonly #child: SchemaTree;
  readonly #leaves: readonly ParquetLeaf[];
  readonly #pages: readonly ParquetPages[];
  #values: DecodedArray | null = null;
  #at = 0;

  constructor(child: SchemaTree, leaves: readonly ParquetLeaf[], pages: readonly ParquetPages[]) {
    this.#child = child;
    this.#leaves = leaves;
    this.#pages = pages;
  }

  async fill(): Promise<number> {
    this.#values ??= await this.#readAll();
    return this.#values.length - this.#at;
  }

  take(): TypedValue {
    return this.#values?.[this.#at++] as TypedValue;
  }

  async #readAll(): Promise<DecodedArray> {
    const found = new Map<string, DecodedArray>();
    for (const [index, { chunk, schemaPath }] of this.#leaves.entries()) {
      // An array around every value on every level: what takes memory here.
      if (Number(chunk.num_values) * schemaPath.length > 2 * MAX_PARQUET_PAGE_VALUES) throw tooLarge();
      const rows: unknown[] = [];
      for (;;) {
        const pages = this.#pages[index];
        const before = rows.length === 0 ? undefined : rows;
        const values = await pages?.next(before);
        if (values == null) break;
        this.heldBytes += pages?.heldBytes ?? 0;
        if (this.heldBytes > MAX_PARQUET_HELD_BYTES || rows.length > MAX_PARQUET_PAGE_VALUES)
          throw tooLarge();
        if (values !== rows) for (const value of values) rows.push(value);
      }
      found.set(chunk.path_in_schema.join('.'), rows);
    }
    if (this.#child.children.length === 0) return found.values().next().value ?? [];
    assembleNested(found, this.#child, { ...DEFAULT_PARSERS, ...parsers });
    return found.get(this.#child.element.name) ?? [];
  }
}

function tooLarge(): Error {
  return new ParquetDamage('a row group has too many nested values; write smaller row groups');
}

function damaged(cause: unknown): InputError {
  const what = cause instanceof ParquetDamage ? cause.message : 'it cannot be decoded';
  return Object.assign(
    inputError('unsupported_format', `The Parquet file is damaged or not understood: ${what}`),
    {
      cause,
    },
  );
}
