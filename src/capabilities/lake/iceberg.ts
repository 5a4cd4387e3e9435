/*
 * Writes an Iceberg table in format version 2. The metadata has one snapshot. The manifest list of
 * the snapshot names one manifest per month, and the manifests name Parquet files.
 * https://iceberg.apache.org/spec/
 */
import { isDeepStrictEqual } from 'node:util';
import { columnsOf, orderOf } from '../../domain/export.ts';
import { type AvroField, type AvroRecord, type AvroSchema, writeAvro } from './avro.ts';
import type { DataFile, Manifest } from './file-store.ts';
import type { LakeColumn, TableFields } from './table-store.ts';

export interface DataEntry extends Pick<DataFile, 'rows' | 'bytes' | 'firstMicros' | 'lastMicros'> {
  readonly path: string;
}

export interface ManifestEntry extends Manifest {
  readonly path: string;
}

/**
 * Columns of every lake table. The property columns come after these columns. The id of a column in
 * this list is its position, counted from 1.
 */
const columns = columnsOf('events', { includeRemoved: false });
const idOf = (column: string): number => columns.findIndex(({ name }) => name === column) + 1;
const timeId = idOf('inserted_at');

const partitionName = 'inserted_at_month';
const partitionFields = [{ 'source-id': timeId, 'field-id': 1000, name: partitionName, transform: 'month' }];

const sortOrderId = 1;
const sortOrder = {
  'order-id': sortOrderId,
  fields: orderOf.events.map((column) => ({
    transform: 'identity',
    'source-id': idOf(column),
    direction: 'asc',
    'null-order': 'nulls-first',
  })),
};

const types = { string: 'string', numeric: 'double', boolean: 'boolean', date: 'timestamptz' } as const;

const schemaOf = (fields: TableFields) => ({
  type: 'struct',
  'schema-id': fields.schema,
  fields: [
    ...columns.map(({ name, kind, isOptional }, index) => ({
      id: index + 1,
      name,
      required: !isOptional,
      type: kind === 'instant' ? 'timestamptz' : 'string',
      ...(kind === 'json' && { doc: 'The properties: a JSON object.' }),
    })),
    ...fields.properties.map(({ id, key, type }) => ({ id, name: key, required: false, type: types[type] })),
  ],
});

/** A field keeps its id as long as it keeps its name and type. */
export function evolveFields(stored: TableFields, wanted: readonly LakeColumn[]): TableFields {
  let last = Math.max(stored.last, columns.length);
  const properties = wanted.map(({ key, type }) => {
    const existing = stored.properties.find((field) => field.key === key && field.type === type);
    return existing ?? { id: ++last, key, type };
  });
  if (isDeepStrictEqual(properties, stored.properties)) return stored;
  return { schema: stored.schema + 1, last, properties };
}

const field = (id: number, name: string, type: AvroSchema): AvroField => ({ name, type, 'field-id': id });
const optional = (id: number, name: string, type: AvroSchema) => ({
  ...field(id, name, ['null', type]),
  default: null,
});
const record = (name: string, fields: readonly AvroField[]): AvroRecord => ({ type: 'record', name, fields });
/** An array of pairs, because the keys of an Avro map cannot be numbers. */
const bounds = (key: number, value: number) => ({
  type: 'array' as const,
  logicalType: 'map',
  items: record(`k${key}_v${value}`, [field(key, 'key', 'int'), field(value, 'value', 'bytes')]),
});

const manifestSchema = record('manifest_entry', [
  field(0, 'status', 'int'),
  optional(1, 'snapshot_id', 'long'),
  optional(3, 'sequence_number', 'long'),
  optional(4, 'file_sequence_number', 'long'),
  field(
    2,
    'data_file',
    record('r2', [
      field(134, 'content', 'int'),
      field(100, 'file_path', 'string'),
      field(101, 'file_format', 'string'),
      field(102, 'partition', record('r102', [optional(1000, partitionName, 'int')])),
      field(103, 'record_count', 'long'),
      field(104, 'file_size_in_bytes', 'long'),
      optional(125, 'lower_bounds', bounds(126, 127)),
      optional(128, 'upper_bounds', bounds(129, 130)),
      optional(140, 'sort_order_id', 'int'),
    ]),
  ),
]);

const listSchema = record('manifest_file', [
  field(500, 'manifest_path', 'string'),
  field(501, 'manifest_length', 'long'),
  field(502, 'partition_spec_id', 'int'),
  field(517, 'content', 'int'),
  field(515, 'sequence_number', 'long'),
  field(516, 'min_sequence_number', 'long'),
  field(503, 'added_snapshot_id', 'long'),
  field(504, 'added_files_count', 'int'),
  field(505, 'existing_files_count', 'int'),
  field(506, 'deleted_files_count', 'int'),
  field(512, 'added_rows_count', 'long'),
  field(513, 'existing_rows_count', 'long'),
  field(514, 'deleted_rows_count', 'long'),
  optional(507, 'partitions', {
    type: 'array',
    'element-id': 508,
    items: record('r508', [
      field(509, 'contains_null', 'boolean'),
      optional(518, 'contains_nan', 'boolean'),
      optional(510, 'lower_bound', 'bytes'),
      optional(511, 'upper_bound', 'bytes'),
    ]),
  } as AvroSchema),
]);

const added = 1;

/** The entries inherit the sequence number of the first manifest list that names the manifest. */
export function writeManifest(
  fields: TableFields,
  version: number,
  month: string,
  files: readonly DataEntry[],
): Buffer {
  return writeAvro(
    manifestSchema,
    {
      schema: JSON.stringify(schemaOf(fields)),
      'schema-id': String(fields.schema),
      'partition-spec': JSON.stringify(partitionFields),
      'partition-spec-id': '0',
      'format-version': '2',
      content: 'data',
    },
    files.map(({ path, rows, bytes, firstMicros, lastMicros }) => ({
      status: added,
      snapshot_id: version,
      sequence_number: null,
      file_sequence_number: null,
      data_file: {
        content: 0,
        file_path: path,
        file_format: 'PARQUET',
        sort_order_id: sortOrderId,
        partition: { [partitionName]: monthsOf(month) },
        record_count: rows,
        file_size_in_bytes: bytes,
        lower_bounds: [{ key: timeId, value: boundOf(firstMicros) }],
        upper_bounds: [{ key: timeId, value: boundOf(lastMicros) }],
      },
    })),
  );
}

function boundOf(micros: number): Buffer {
  const bound = Buffer.alloc(8);
  bound.writeBigInt64LE(BigInt(micros));
  return bound;
}

export function writeManifestList(version: number, manifests: readonly ManifestEntry[]): Buffer {
  return writeAvro(
    listSchema,
    { 'snapshot-id': String(version), 'sequence-number': String(version), 'format-version': '2' },
    manifests.map(({ path, bytes, version: since, month, files, rows }) => {
      const bound = Buffer.alloc(4);
      bound.writeInt32LE(monthsOf(month));
      return {
        manifest_path: path,
        manifest_length: bytes,
        partition_spec_id: 0,
        content: 0,
        sequence_number: since,
        min_sequence_number: since,
        added_snapshot_id: since,
        added_files_count: files,
        existing_files_count: 0,
        deleted_files_count: 0,
        added_rows_count: rows,
        existing_rows_count: 0,
        deleted_rows_count: 0,
        partitions: [{ contains_null: false, contains_nan: false, lower_bound: bound, upper_bound: bound }],
      };
    }),
  );
}

export interface TableState {
  readonly uuid: string;
  readonly location: string;
  readonly version: number;
  readonly fields: TableFields;
  readonly at: Date;
  readonly manifestList: string;
  readonly manifests: readonly ManifestEntry[];
}

/** Lists no older snapshots, because they could still contain a deleted person. */
export function tableMetadata(state: TableState): object {
  const { uuid, location, version, fields, at, manifestList, manifests } = state;
  const sum = (of: (entry: ManifestEntry) => number) =>
    String(manifests.reduce((total, entry) => total + of(entry), 0));
  return {
    'format-version': 2,
    'table-uuid': uuid,
    location,
    'last-sequence-number': version,
    'last-updated-ms': at.getTime(),
    'last-column-id': Math.max(fields.last, columns.length),
    'current-schema-id': fields.schema,
    schemas: [schemaOf(fields)],
    'default-spec-id': 0,
    'partition-specs': [{ 'spec-id': 0, fields: partitionFields }],
    'last-partition-id': 1000,
    'default-sort-order-id': sortOrderId,
    'sort-orders': [sortOrder],
    properties: { 'write.format.default': 'parquet', owner: 'sluice' },
    'current-snapshot-id': version,
    refs: { main: { 'snapshot-id': version, type: 'branch' } },
    snapshots: [
      {
        'snapshot-id': version,
        'sequence-number': version,
        'timestamp-ms': at.getTime(),
        'manifest-list': manifestList,
        'schema-id': fields.schema,
        summary: {
          operation: 'overwrite',
          'total-data-files': sum(({ files }) => files),
          'total-records': sum(({ rows }) => rows),
        },
      },
    ],
    'snapshot-log': [{ 'snapshot-id': version, 'timestamp-ms': at.getTime() }],
    'metadata-log': [],
    statistics: [],
  };
}

function monthsOf(month: string): number {
  const date = new Date(`${month}T00:00:00Z`);
  return (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth();
}
