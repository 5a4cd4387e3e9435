import { ByteWriter, ParquetWriter, type SchemaElement } from 'hyparquet-writer';
import type { FileDataset } from '../../domain/export.ts';
import type { StoredFileWriter } from './attempt-files.ts';
import { type Column, type Columns, columnsOf } from './columns.ts';

/** One file: row groups, then the footer. What has been encoded goes to the store at once. */
export class ParquetFile {
  readonly #columns: readonly Column[];
  readonly #stored: StoredFileWriter;
  readonly #bytes = new ByteWriter();
  readonly #parquet: ParquetWriter;

  constructor(dataset: FileDataset, stored: StoredFileWriter) {
    this.#columns = columnsOf(dataset);
    this.#stored = stored;
    this.#parquet = new ParquetWriter({
      writer: this.#bytes,
      schema: schemaOf(this.#columns),
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

function schemaOf(columns: readonly Column[]): SchemaElement[] {
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
