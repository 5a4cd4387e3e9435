import type { ColumnMetaData, RowGroup } from 'hyparquet';
import { ByteWriter, type SchemaElement } from 'hyparquet-writer';
import { writeMetadata } from 'hyparquet-writer/src/metadata.js';
import { readInstant } from '../../base/instant.ts';
import type { DataType } from '../../domain/data-type.ts';
import type { PropertyField } from '../../domain/definitions.ts';
import { entities, idColumn } from '../../domain/entity.ts';
import { type Column, columnsOf } from '../../domain/export.ts';
import type { StoredFileWriter } from './attempt-files.ts';
import { ParquetColumn } from './parquet-column.ts';
import { findValues } from './rows.ts';
import type { FileFacts, FileRows, IdSink } from './split-files.ts';

const magic = 0x31524150;

export interface PackedGroup {
  readonly rows: number;
  column(name: string): Promise<readonly (string | null)[]>;
  packed(place: number): { readonly about: ColumnMetaData; readonly bytes: Buffer };
}

/**
 * Writes a Parquet file: row groups, followed by the footer. Encoded bytes are stored immediately.
 */
export class ParquetFile {
  readonly #stored: StoredFileWriter;
  readonly #bytes = new ByteWriter();
  readonly #schema: SchemaElement[];
  readonly #columns: readonly ParquetColumn[];
  readonly #metadata: number;
  readonly #properties: readonly { readonly field: PropertyField; readonly column: ParquetColumn }[];
  readonly #ends: Int32Array;
  readonly #ids: IdSink | null;
  readonly #groups: RowGroup[] = [];
  #rows = 0;
  #allRows = 0;

  constructor({ dataset, request, owner }: FileRows, stored: StoredFileWriter, maxRows: number) {
    this.#stored = stored;
    const columns = columnsOf(dataset, request);
    const fields = owner?.fields ?? [];
    this.#ids = owner?.openIds() ?? null;
    const elements = [
      ...columns.map((column, index) => elementOf(column, index + 1)),
      ...fields.map((field) => elementOf(columnOf(field), field.id)),
    ];
    this.#schema = [{ name: 'root', num_children: elements.length }, ...elements];
    const open = (column: Column, index: number) =>
      new ParquetColumn(column, elements[index] as SchemaElement, maxRows);
    this.#columns = columns.map(open);
    this.#metadata = columns.findIndex(({ name }) => name === 'metadata');
    this.#properties = fields.map((field, index) => ({
      field,
      column: open(columnOf(field), columns.length + index),
    }));
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
    if (this.#properties.length > 0) {
      const metadataStart = this.#metadata === 0 ? start : (this.#ends[this.#metadata - 1] as number) + 1;
      this.#addProperties(bytes.toString('utf8', metadataStart, this.#ends[this.#metadata]));
    }
    this.#rows++;
  }

  #addProperties(metadata: string): void {
    const values = JSON.parse(metadata) as Readonly<Record<string, unknown>>;
    for (const { field, column } of this.#properties) {
      const value = Buffer.from(Object.hasOwn(values, field.key) ? texts[field.type](values[field.key]) : '');
      column.add(value, 0, value.length);
    }
  }

  async endGroup(): Promise<void> {
    await this.#addGroup(this.#rows, (column) => column.write(this.#bytes, this.#idsOf(column.name)));
    this.#rows = 0;
  }

  #idsOf(name: string): ((texts: Buffer, start: number, end: number) => void) | null {
    const entity = entities.find((each) => idColumn[each] === name);
    return entity === undefined ? null : (...text) => this.#ids?.add(entity, ...text);
  }

  /** Adds a row group of another file, whose first columns must be those of this file. */
  async addPacked(group: PackedGroup): Promise<void> {
    for (const entity of entities)
      for (const id of new Set(await group.column(idColumn[entity])))
        if (id !== null) this.#ids?.add(entity, Buffer.from(id));
    await this.#addGroup(group.rows, (_, place) => {
      const { about, bytes } = group.packed(place);
      const { dictionary_page_offset: dictionary, data_page_offset: data } = about;
      const shift = BigInt(this.#bytes.offset) - (dictionary ?? data);
      this.#bytes.appendBytes(bytes);
      return {
        ...about,
        data_page_offset: data + shift,
        ...(dictionary !== undefined && { dictionary_page_offset: dictionary + shift }),
      };
    });
  }

  async #addGroup(
    rows: number,
    write: (column: ParquetColumn, place: number) => ColumnMetaData,
  ): Promise<void> {
    const start = this.#bytes.offset;
    const all = [...this.#columns, ...this.#properties.map(({ column }) => column)];
    const columns = all.map((column, place) => {
      const offset = this.#bytes.offset;
      return { file_offset: BigInt(offset), meta_data: write(column, place) };
    });
    this.#groups.push({
      columns,
      total_byte_size: columns.reduce((sum, { meta_data }) => sum + meta_data.total_uncompressed_size, 0n),
      num_rows: BigInt(rows),
      total_compressed_size: BigInt(this.#bytes.offset - start),
    });
    this.#allRows += rows;
    await this.#flush();
  }

  async end(): Promise<FileFacts | null> {
    writeMetadata(this.#bytes, {
      version: 2,
      created_by: 'sluice',
      schema: this.#schema,
      num_rows: BigInt(this.#allRows),
      row_groups: this.#groups,
    } as Parameters<typeof writeMetadata>[1]);
    this.#bytes.appendUint32(magic);
    await this.#flush();
    if (this.#ids === null) return null;
    const place = this.#columns.findIndex(({ name }) => name === 'inserted_at');
    const timesOf = (group: RowGroup | undefined) => group?.columns[place]?.meta_data?.statistics;
    return {
      filter: this.#ids.bytes(),
      firstMicros: Number(timesOf(this.#groups[0])?.min_value ?? 0),
      lastMicros: Number(timesOf(this.#groups.at(-1))?.max_value ?? 0),
    };
  }

  /** Stores the encoded bytes. `offset` is the position in the file, so it is not reset. */
  async #flush(): Promise<void> {
    const bytes = Buffer.from(this.#bytes.getBytes());
    this.#bytes.index = 0;
    await this.#stored.write(bytes);
  }
}

/**
 * Functions that write a property value as text. The text is empty if the value has a different
 * type.
 */
const texts: Readonly<Record<DataType, (value: unknown) => string>> = {
  string: (value) => (typeof value === 'string' ? JSON.stringify(value) : ''),
  numeric: (value) => (typeof value === 'number' && Number.isFinite(value) ? String(value) : ''),
  boolean: (value) => (typeof value === 'boolean' ? String(value) : ''),
  date: (value) => {
    const instant = typeof value === 'string' ? readInstant(value) : null;
    return instant === null ? '' : String(1_000 * instant.ms + Number(instant.text.slice(-4, -1)));
  },
};

const kindOf = { string: 'text', numeric: 'number', boolean: 'boolean', date: 'instant' } as const;

function columnOf({ key, type }: PropertyField): Column {
  return { name: key, kind: kindOf[type], isOptional: true };
}

/** Query engines find columns by their field id. */
function elementOf({ name, kind, isOptional }: Column, id: number): SchemaElement {
  const field = { name, field_id: id, repetition_type: isOptional ? 'OPTIONAL' : 'REQUIRED' } as const;
  if (kind === 'number') return { ...field, type: 'DOUBLE' };
  if (kind === 'boolean') return { ...field, type: 'BOOLEAN' };
  if (kind !== 'instant') return { ...field, type: 'BYTE_ARRAY', converted_type: 'UTF8' };
  return {
    ...field,
    type: 'INT64',
    converted_type: 'TIMESTAMP_MICROS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
  };
}
