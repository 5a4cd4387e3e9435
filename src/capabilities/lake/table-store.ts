import { sql } from 'kysely';
import { MAX_PROPERTY_NAME_CHARS } from '../../base/limits.ts';
import { choice, listOf, objectOf, text, withDefault } from '../../base/operator-file/schema.ts';
import { uuidv7 } from '../../base/uuid.ts';
import { dataTypes } from '../../domain/data-type.ts';
import type { PropertyField } from '../../domain/definitions.ts';
import type { FileRef } from '../../files/file-store.ts';
import type { DefinitionList } from '../../lookups/seam.ts';
import { itemsTable } from '../../lookups/store.ts';
import { changedBy, columnOf, type Database, firstRow } from '../../postgres/database.ts';

export type LakeColumn = Omit<PropertyField, 'id'>;

export const lakeColumns = itemsTable<LakeColumn>({
  table: 'lake_columns',
  columns: ['key', 'type'],
  isDated: false,
});

export interface LakeTable {
  readonly environmentId: number;
  /** UUID in the addresses of the table's files. */
  readonly folder: string;
  /**
   * Address that the file store had when the metadata was written. `null` if no metadata has been
   * written.
   */
  readonly location: string | null;
  /** 0 if there is no snapshot. */
  readonly version: number;
  readonly fields: TableFields;
}

export interface TableFields {
  readonly schema: number;
  /** Highest field id so far, including removed fields. 0 if no id has been used. */
  readonly last: number;
  readonly properties: readonly PropertyField[];
}

const tableColumns = sql`environment_id as "environmentId", folder, location, version, fields`;

export async function openTable(db: Database, environmentId: number): Promise<LakeTable> {
  const table = await firstRow<LakeTable>(db)`
    with made as (
      insert into lake_tables (environment_id, folder)
      values (${environmentId}, ${uuidv7()})
      on conflict do nothing
      returning ${tableColumns}
    )
    select * from made
    union all
    select ${tableColumns} from lake_tables where environment_id = ${environmentId}`;
  return table ?? openTable(db, environmentId);
}

/** Returns false if another process has changed the fields. */
export async function setFields(
  db: Database,
  { fields, environmentId }: LakeTable,
  next: TableFields,
): Promise<boolean> {
  const changed = await changedBy(db)`
    update lake_tables
    set fields = ${JSON.stringify(next)}::jsonb
    where environment_id = ${environmentId} and fields = ${JSON.stringify(fields)}::jsonb`;
  return changed === 1;
}

export async function lockTable(db: Database, environmentId: number): Promise<LakeTable> {
  await openTable(db, environmentId);
  const table = await firstRow<LakeTable>(db)`
    select ${tableColumns} from lake_tables where environment_id = ${environmentId} for update`;
  return table as LakeTable;
}

export async function setSnapshot(
  db: Database,
  table: Omit<LakeTable, 'folder' | 'fields'> & { readonly metadataRef: FileRef },
): Promise<void> {
  const { environmentId, location, version, metadataRef } = table;
  await sql`
    update lake_tables
    set location = ${location}, version = ${version}, metadata_ref = ${metadataRef}, changed_at = now()
    where environment_id = ${environmentId}`.execute(db);
}

export function findMovedTables(db: Database, location: string): Promise<number[]> {
  return columnOf<number>(db)`
    select environment_id from lake_tables where version > 0 and location <> ${location}`;
}

/**
 * Maximum number of property columns. Each column adds about 100 bytes per row group to a file's
 * footer.
 */
const MAX_LAKE_COLUMNS = 100;

/** Columns that every lake table has. Query engines ignore the case of these names. */
const ownColumns = [
  ...['event_id', 'event_type', 'event_name', 'user_id', 'company_id', 'source', 'inserted_at', 'metadata'],
  ...['first_seen_at', 'last_seen_at'],
];

const column = objectOf('a column of the lake', 'A property with a column of its own in the lake.', {
  key: text({
    maxChars: MAX_PROPERTY_NAME_CHARS,
    description: 'The name of the property, and of the column.',
    problem: (name) =>
      ownColumns.includes(name.toLowerCase()) ? 'is a column that the tables already have' : null,
  }),
  type: choice(dataTypes, 'The type of the column. Values of another type stay in `metadata` alone.'),
});

export const columnList: DefinitionList = {
  name: 'lake_columns',
  schema: withDefault(
    listOf(column, 'Properties with columns of their own in the lake.', MAX_LAKE_COLUMNS),
    [],
  ),
  ignoresCase: true,
  table: lakeColumns,
};
