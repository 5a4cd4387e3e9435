import type { RowGroup } from 'hyparquet';
import { ByteWriter, type SchemaElement } from 'hyparquet-writer';
import { writeMetadata } from 'hyparquet-writer/src/metadata.js';
import type { StoredFileWriter } from './attempt-files.ts';
import { type Column, columnsOf } from './page.ts';
import { ParquetColumn } from './parquet-column.ts';
import { findValues } from './rows.ts';
import type { FileRows } from './split-files.ts';

/** `PAR1` */
const magic = 0x31524150;

/** A file: row groups, then the footer. Encoded bytes go to the store at once. */
export class ParquetFile {
  readonly #stored: StoredFileWriter;
  readonly #bytes = new ByteWriter();
  readonly #schema: SchemaElement[];
  readonly #columns: readonly ParquetColumn[];
  readonly #ends: Int32Array;
  readonly #groups: RowGroup[] = [];
  #rows = 0;
  #allRows = 0;

  /** `maxRows`: of a row group. */
  constructor({ dataset, request }: FileRows, stored: StoredFileWriter, maxRows: number) {
    this.#stored = stored;
    const columns = columnsOf(dataset, request);
    const elements = columns.map(elementOf);
    this.#schema = [{ name: 'root', num_children: columns.length }, ...elements];
    this.#columns = columns.map(
      (column, index) => new ParquetColumn(column, elements[index] as SchemaElement, maxRows),
    );
    this.#ends = new Int32Array(columns.length);
    this.#bytes.appendUint32(magic);
  }

  addRow(bytes: Buffer, start: number, end: number): void {
    findValues(bytes, start, end, this.#ends);
    let at = start;
    for (const [index, column] of this.#columns.entries()) {
      const valueEnd = this.#ends[index] as number;
      column.add(bytes, at, valueEnd);
      at = valueEnd + 1;
    }
    this.#rows++;
  }

  async endGroup(): Promise<void> {
    const start = this.#bytes.offset;
    const columns = this.#columns.map((column) => {
      const offset = this.#bytes.offset;
      return { file_offset: BigInt(offset), meta_data: column.write(this.#bytes) };
    });
    this.#groups.push({
      columns,
      total_byte_size: columns.reduce((sum, { meta_data }) => sum + meta_data.total_uncompressed_size, 0n),
      num_rows: BigInt(this.#rows),
      total_compressed_size: BigInt(this.#bytes.offset - start),
    });
    this.#allRows += this.#rows;
    this.#rows = 0;
    await this.#flush();
  }

  async end(): Promise<void> {
    writeMetadata(this.#bytes, {
      version: 2,
      created_by: 'sluice',
      schema: this.#schema,
      num_rows: BigInt(this.#allRows),
      row_groups: this.#groups,
    } as Parameters<typeof writeMetadata>[1]);
    this.#bytes.appendUint32(magic);
    await this.#flush();
  }

  /** The buffer is used again; positions in the file go on counting. */
  async #flush(): Promise<void> {
    const bytes = Buffer.from(this.#bytes.getBytes());
    this.#bytes.index = 0;
    await this.#stored.write(bytes);
  }
}

/** Iceberg finds columns by the ids of their fields. */
function elementOf({ name, kind, isOptional }: Column, index: number): SchemaElement {
  const field = { name, field_id: index + 1, repetition_type: isOptional ? 'OPTIONAL' : 'REQUIRED' } as const;
  if (kind !== 'instant') return { ...field, type: 'BYTE_ARRAY', converted_type: 'UTF8' };
  return {
    ...{ ...field, type: 'INT64', converted_type: 'TIMESTAMP_MICROS' },
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
  };
}
