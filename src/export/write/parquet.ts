import { ByteWriter, ParquetWriter, type SchemaElement } from 'hyparquet-writer';
import { type RawBuilder, sql } from 'kysely';
import type { Dataset } from '../../domain/export.ts';
import type { Filter } from '../filter.ts';
import type { AttemptFiles, StoredFileWriter } from './attempt-files.ts';
import type { Compilable } from './copy-out.ts';
import { pageMetadata, pageOf, selectFromPage } from './page.ts';
import type { RowBlock } from './row-blocks.ts';
import { type DatasetSink, filenameOf } from './split-files.ts';

/** A row group is held in memory until it is complete, and encoding it holds up everything else in the process. */
const groupRows = 2_500;
const maxGroupBytes = 512 * 1024;

interface OpenFile {
  readonly stored: StoredFileWriter;
  readonly parquet: ParquetFile;
  rows: number;
}

/** Rows (as `selectForParquet` gives them) into row groups, and those into one file after another. */
export class ParquetFiles implements DatasetSink {
  readonly #files: AttemptFiles;
  readonly #dataset: Dataset;
  readonly #splitBytes: number;
  /** Before it is encoded. */
  readonly #groupBytes: number;
  readonly #columns: readonly ParquetColumn[];
  #group: Columns;
  #rows = 0;
  #bytes = 0;
  #file: OpenFile | null = null;
  #finished = 0;
  #finishedBytes = 0;

  constructor(files: AttemptFiles, dataset: Dataset, splitBytes: number) {
    this.#files = files;
    this.#dataset = dataset;
    this.#splitBytes = splitBytes;
    this.#groupBytes = Math.min(maxGroupBytes, splitBytes);
    this.#columns = parquetColumns(dataset);
    this.#group = this.#columns.map(() => []);
  }

  get bytes(): number {
    return this.#finishedBytes + (this.#file?.stored.bytes ?? 0);
  }

  async add({ bytes, ends }: RowBlock): Promise<void> {
    let start = 0;
    for (const end of ends) {
      this.#addRow(bytes.toString('utf8', start, end - 1));
      this.#bytes += end - start;
      start = end;
      if (this.#rows === groupRows || this.#bytes >= this.#groupBytes) await this.#endGroup();
    }
  }

  async end(): Promise<void> {
    if (this.#rows > 0) await this.#endGroup();
    if (this.#file !== null || this.#finished === 0) await this.#finish(await this.#current());
  }

  #addRow(line: string): void {
    const values = line.split('\u0002');
    for (const [index, column] of this.#columns.entries()) {
      this.#group[index]?.push(parquetValue(column, values[index] ?? ''));
    }
    this.#rows++;
  }

  async #endGroup(): Promise<void> {
    const file = await this.#current();
    await file.parquet.addGroup(this.#group, this.#rows);
    file.rows += this.#rows;
    this.#group = this.#columns.map(() => []);
    this.#rows = 0;
    this.#bytes = 0;
    if (file.stored.bytes >= this.#splitBytes) await this.#finish(file);
  }

  async #current(): Promise<OpenFile> {
    if (this.#file !== null) return this.#file;
    const stored = await this.#files.create('none');
    this.#file = { stored, parquet: new ParquetFile(this.#columns, stored), rows: 0 };
    return this.#file;
  }

  async #finish({ stored, parquet, rows }: OpenFile): Promise<void> {
    await parquet.end();
    const dataset = this.#dataset;
    const filename = filenameOf({ dataset, format: 'parquet', compression: 'none' }, ++this.#finished);
    const { bytes } = await this.#files.finish(stored, { filename, dataset, rows });
    this.#finishedBytes += bytes;
    this.#file = null;
  }
}

/** Nothing at all is a null: even an empty text comes with its quotes. */
function parquetValue({ kind }: ParquetColumn, value: string): string | bigint | null {
  if (value === '') return null;
  if (kind === 'instant') return BigInt(value);
  return kind === 'json' ? value : (JSON.parse(value) as string);
}

/** The values of a row group, column by column. */
export type Columns = (string | bigint | null)[][];

/** One file: row groups, then the footer. What has been encoded goes to the store at once. */
export class ParquetFile {
  readonly #columns: readonly ParquetColumn[];
  readonly #stored: StoredFileWriter;
  readonly #bytes = new ByteWriter();
  readonly #parquet: ParquetWriter;

  constructor(columns: readonly ParquetColumn[], stored: StoredFileWriter) {
    this.#columns = columns;
    this.#stored = stored;
    this.#parquet = new ParquetWriter({
      writer: this.#bytes,
      schema: schemaOf(columns),
      createdBy: 'sluice',
    });
  }

  async addGroup(values: Columns, rows: number): Promise<void> {
    const columnData = this.#columns.map(({ name, kind }, index) => ({
      ...{ name, data: values[index] ?? [] },
      // The least and greatest text of JSON tell a reader nothing.
      statistics: kind !== 'json',
    }));
    await this.#parquet.write({ columnData, rowGroupSize: rows });
    await this.#flush();
  }

  async end(): Promise<void> {
    await this.#parquet.finish();
    await this.#flush();
  }

  /** The buffer is used again; positions in the file go on counting. */
  async #flush(): Promise<void> {
    const bytes = Buffer.from(this.#bytes.getBytes());
    this.#bytes.index = 0;
    await this.#stored.write(bytes);
  }
}

function schemaOf(columns: readonly ParquetColumn[]): SchemaElement[] {
  const elements = columns.map(({ name, kind, isOptional }): SchemaElement => {
    const repetition_type = isOptional ? 'OPTIONAL' : 'REQUIRED';
    if (kind !== 'instant') return { name, repetition_type, type: 'BYTE_ARRAY', converted_type: 'UTF8' };
    return {
      ...{ name, repetition_type, type: 'INT64', converted_type: 'TIMESTAMP_MICROS' },
      logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
    };
  });
  return [{ name: 'root', num_children: columns.length }, ...elements];
}

/** `json`: text as it is. `text`: comes as JSON text, in which nothing has to be escaped any more. */
interface ParquetColumn {
  readonly name: string;
  readonly kind: 'text' | 'json' | 'instant';
  readonly isOptional: boolean;
}

/**
 * Properties are not columns of their own: a property may hold a number here and a text there, and a Parquet column is of
 * one type. All of them are in `metadata`, as JSON.
 */
const columns: Readonly<Record<Dataset, readonly ParquetColumn[]>> = {
  users: [
    text('user_id'),
    optional('company_id'),
    metadata(),
    instant('first_seen_at'),
    instant('last_seen_at'),
  ],
  companies: [text('company_id'), metadata(), instant('first_seen_at'), instant('last_seen_at')],
  events: [
    ...['event_id', 'event_type', 'event_name', 'user_id'].map(text),
    ...[optional('company_id'), text('source'), instant('inserted_at'), metadata()],
  ],
};

export function parquetColumns(dataset: Dataset): readonly ParquetColumn[] {
  return columns[dataset];
}

/** One line per row, the values with U+0002 between them, which none of them can hold. */
export function selectForParquet(dataset: Dataset, filter: Filter): Compilable {
  const values = columns[dataset].map((column) => selected(column, filter));
  return selectFromPage(pageOf(dataset, filter), values);
}

function selected({ name, kind }: ParquetColumn, filter: Filter): RawBuilder<unknown> {
  const stored = sql.ref(`page.${name}`);
  if (kind === 'json') return sql`${pageMetadata(filter)}::text`;
  if (kind === 'text') return sql`to_json(${stored})::text`;
  return sql`(extract(epoch from ${stored}) * 1000000)::bigint`;
}

function text(name: string): ParquetColumn {
  return { name, kind: 'text', isOptional: false };
}

function optional(name: string): ParquetColumn {
  return { name, kind: 'text', isOptional: true };
}

function metadata(): ParquetColumn {
  return { name: 'metadata', kind: 'json', isOptional: false };
}

function instant(name: string): ParquetColumn {
  return { name, kind: 'instant', isOptional: false };
}
