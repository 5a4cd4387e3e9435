/*
 * An Iceberg table, version 2 of the format: one JSON file of metadata with one snapshot, a list of manifests, and a manifest for each
 * month, which names the Parquet files of that month's events. https://iceberg.apache.org/spec/
 */
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import avro, { type Schema } from 'avsc';
import type { LakeColumnItem } from '../domain/definitions.ts';
import type { Dataset } from '../domain/export.ts';
import { type Column, columnsOf, orderOf } from '../domain/export-columns.ts';
import type { ColumnStatistics, Manifest } from '../postgres/stores/lake-files.ts';
import type { TableFields } from '../postgres/stores/lake-tables.ts';

export interface DataEntry {
  /** The address of the file. */
  readonly path: string;
  readonly rows: number;
  readonly bytes: number;
  readonly statistics: Readonly<Record<string, ColumnStatistics>>;
}

/** A manifest by its address. */
export interface ManifestEntry extends Manifest {
  readonly path: string;
}

const partitionName = 'inserted_at_month';

/** The part of a table's metadata that does not depend on its rows. */
interface Layout {
  /** The columns of its Parquet files; the id of a field is its place, from 1. */
  readonly columns: readonly Column[];
  readonly partitionFields: readonly object[];
  readonly sortOrder: object;
}

function layoutOf(name: Dataset): Layout {
  const columns = columnsOf(name, { includeRemoved: false });
  const idOf = (column: string): number => columns.findIndex((each) => each.name === column) + 1;
  return {
    columns,
    partitionFields:
      name === 'events'
        ? [{ 'source-id': idOf('inserted_at'), 'field-id': 1000, name: partitionName, transform: 'month' }]
        : [],
    sortOrder: {
      'order-id': sortOrderId,
      fields: orderOf[name].map((column) => ({
        ...{
          transform: 'identity',
          'source-id': idOf(column),
          direction: 'asc',
          'null-order': 'nulls-first',
        },
      })),
    },
  };
}

/** A layout with the columns of properties that a table has besides. */
interface TableLayout extends Layout {
  readonly fields: TableFields;
}

const types = { string: 'string', numeric: 'double', boolean: 'boolean', date: 'timestamptz' } as const;

const schemaOf = ({ columns, fields }: TableLayout) => ({
  type: 'struct',
  'schema-id': fields.schema,
  fields: [
    ...columns.map(({ name, kind, isOptional }, index) => ({
      ...{ id: index + 1, name, required: !isOptional },
      type: kind === 'instant' ? 'timestamptz' : 'string',
      ...(kind === 'json' && { doc: 'The properties: a JSON object.' }),
    })),
    ...fields.properties.map(({ id, key, type }) => ({ id, name: key, required: false, type: types[type] })),
  ],
});

/** Makes the fields of a table what the definitions want: a column keeps its id as long as it keeps its name and type. */
export function evolveFields(
  stored: TableFields,
  wanted: readonly LakeColumnItem[],
  ownColumns: number,
): TableFields {
  let last = Math.max(stored.last, ownColumns);
  const properties = wanted.map(({ key, type }) => {
    const known = stored.properties.find((field) => field.key === key && field.type === type);
    return known ?? { id: ++last, key, type };
  });
  if (isDeepStrictEqual(properties, stored.properties)) return stored;
  return { schema: stored.schema + 1, last, properties };
}

const sortOrderId = 1;

export const layouts: Readonly<Record<Dataset, Layout>> = {
  events: layoutOf('events'),
  users: layoutOf('users'),
  companies: layoutOf('companies'),
};

const ids = (id: number) => ({ 'field-id': id });
const field = (id: number, name: string, type: unknown) => ({ name, type, ...ids(id) });
const optional = (id: number, name: string, type: unknown) => ({
  ...field(id, name, ['null', type]),
  default: null,
});
/** A map whose keys are numbers: Avro has none, so Iceberg writes an array of pairs. */
const mapOf = (key: number, value: number, type: string) => ({
  type: 'array',
  logicalType: 'map',
  items: {
    type: 'record',
    name: `k${key}_v${value}`,
    fields: [field(key, 'key', 'int'), field(value, 'value', type)],
  },
});

const dataFile = (isPartitioned: boolean) => ({
  type: 'record',
  name: 'r2',
  fields: [
    field(134, 'content', 'int'),
    field(100, 'file_path', 'string'),
    field(101, 'file_format', 'string'),
    field(102, 'partition', {
      type: 'record',
      name: 'r102',
      fields: isPartitioned ? [optional(1000, partitionName, 'int')] : [],
    }),
    field(103, 'record_count', 'long'),
    field(104, 'file_size_in_bytes', 'long'),
    optional(108, 'column_sizes', mapOf(117, 118, 'long')),
    optional(109, 'value_counts', mapOf(119, 120, 'long')),
    optional(110, 'null_value_counts', mapOf(121, 122, 'long')),
    optional(125, 'lower_bounds', mapOf(126, 127, 'bytes')),
    optional(128, 'upper_bounds', mapOf(129, 130, 'bytes')),
    optional(140, 'sort_order_id', 'int'),
  ],
});
const manifestSchema = (isPartitioned: boolean) => ({
  type: 'record',
  name: 'manifest_entry',
  fields: [
    field(0, 'status', 'int'),
    optional(1, 'snapshot_id', 'long'),
    optional(3, 'sequence_number', 'long'),
    optional(4, 'file_sequence_number', 'long'),
    field(2, 'data_file', dataFile(isPartitioned)),
  ],
});
const listSchema = {
  type: 'record',
  name: 'manifest_file',
  fields: [
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
      items: {
        type: 'record',
        name: 'r508',
        fields: [
          field(509, 'contains_null', 'boolean'),
          optional(518, 'contains_nan', 'boolean'),
          optional(510, 'lower_bound', 'bytes'),
          optional(511, 'upper_bound', 'bytes'),
        ],
      },
    }),
  ],
};

const added = 1;

/** The manifest of a month, or of all profiles. Its entries take the sequence number of the snapshot that names it first. */
export function writeManifest(
  layout: TableLayout,
  version: number,
  month: string | null,
  files: readonly DataEntry[],
): Buffer {
  const ofColumns = createColumnMap(layout.columns);
  return avroFile(
    manifestSchema(month !== null),
    {
      schema: JSON.stringify(schemaOf(layout)),
      'schema-id': String(layout.fields.schema),
      'partition-spec': JSON.stringify(layout.partitionFields),
      'partition-spec-id': '0',
      'format-version': '2',
      content: 'data',
    },
    files.map((file) => ({
      ...{ status: added, snapshot_id: version, sequence_number: null, file_sequence_number: null },
      data_file: {
        ...{ content: 0, file_path: file.path, file_format: 'PARQUET', sort_order_id: sortOrderId },
        ...{ partition: month === null ? {} : { [partitionName]: monthsOf(month) } },
        ...{ record_count: file.rows, file_size_in_bytes: file.bytes },
        column_sizes: ofColumns(file, ({ bytes }) => bytes),
        value_counts: ofColumns(file, () => file.rows),
        null_value_counts: ofColumns(file, ({ nulls }) => nulls),
        lower_bounds: ofColumns(file, ({ lower }) => lower && Buffer.from(lower, 'base64')),
        upper_bounds: ofColumns(file, ({ upper }) => upper && Buffer.from(upper, 'base64')),
      },
    })),
  );
}

const createColumnMap =
  (columns: readonly Column[]) =>
  <T>({ statistics }: DataEntry, value: (of: ColumnStatistics) => T | undefined) =>
    columns.flatMap(({ name }, index) => {
      const found = statistics[name] && value(statistics[name]);
      return found === undefined ? [] : [{ key: index + 1, value: found }];
    });

export function writeManifestList(version: number, manifests: readonly ManifestEntry[]): Buffer {
  return avroFile(
    listSchema,
    { 'snapshot-id': String(version), 'sequence-number': String(version), 'format-version': '2' },
    manifests.map(({ path, bytes, version: since, month, files, rows }) => {
      const bound = Buffer.alloc(4);
      if (month !== null) bound.writeInt32LE(monthsOf(month));
      const partition = { contains_null: false, contains_nan: false, lower_bound: bound, upper_bound: bound };
      return {
        ...{ manifest_path: path, manifest_length: bytes, partition_spec_id: 0, content: 0 },
        ...{ sequence_number: since, min_sequence_number: since, added_snapshot_id: since },
        ...{ added_files_count: files, existing_files_count: 0, deleted_files_count: 0 },
        ...{ added_rows_count: rows, existing_rows_count: 0, deleted_rows_count: 0 },
        partitions: month === null ? [] : [partition],
      };
    }),
  );
}

export interface TableState {
  readonly uuid: string;
  /** The address of the table's folder. */
  readonly location: string;
  readonly version: number;
  readonly at: Date;
  /** The address of the manifest list. */
  readonly manifestList: string;
  readonly manifests: readonly ManifestEntry[];
}

/** Older snapshots are not named: none must outlive the person who was deleted from it. */
export function tableMetadata(
  layout: TableLayout,
  { uuid, location, version, at, manifestList, manifests }: TableState,
): object {
  const { columns, fields, partitionFields, sortOrder } = layout;
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
    schemas: [schemaOf(layout)],
    'default-spec-id': 0,
    'partition-specs': [{ 'spec-id': 0, fields: partitionFields }],
    'last-partition-id': partitionFields.length === 0 ? 999 : 1000,
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

/** Returns the number of months since January 1970. */
function monthsOf(month: string): number {
  const date = new Date(`${month}T00:00:00Z`);
  return (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth();
}

/** Returns an object container file of one block. The schema is written as it is: avsc would leave the ids of fields out. */
function avroFile(of: object, about: Readonly<Record<string, string>>, rows: readonly object[]): Buffer {
  const type = avro.Type.forSchema(of as Schema);
  const body = Buffer.concat(rows.map((row) => type.toBuffer(row)));
  const text = { 'avro.schema': JSON.stringify(of), 'avro.codec': 'null', ...about };
  const meta = Object.fromEntries(Object.entries(text).map(([key, value]) => [key, Buffer.from(value)]));
  const marker = createHash('sha256').update(JSON.stringify(text)).update(body).digest().subarray(0, 16);
  const long = avro.Type.forSchema('long');
  const header = avro.Type.forSchema({ type: 'map', values: 'bytes' }).toBuffer(meta);
  const block =
    rows.length === 0 ? [] : [long.toBuffer(rows.length), long.toBuffer(body.length), body, marker];
  return Buffer.concat([Buffer.from('Obj\x01', 'latin1'), header, marker, ...block]);
}
