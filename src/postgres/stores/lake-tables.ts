import { sql } from 'kysely';
import { uuidv7 } from 'uuidv7';
import type { LakeField } from '../../domain/definitions.ts';
import type { Dataset } from '../../domain/export.ts';
import type { FileRef } from '../../files/file-store.ts';
import { changedBy, type Database, firstRow, rowsOf } from '../database.ts';

export interface TableKey {
  readonly environmentId: number;
  readonly name: Dataset;
}

export interface LakeTable extends TableKey {
  /** UUID */
  readonly folder: string;
  /** The address of the file store, as the metadata has it; null: there is no metadata yet. */
  readonly location: string | null;
  /** The number of the snapshot; 0: there is none yet. */
  readonly version: number;
  readonly fields: TableFields;
}

/** The columns that properties have in a table. */
export interface TableFields {
  /** Counts the versions of the schema. */
  readonly schema: number;
  /** The last id that was given: that of a column that went stays its own. 0: there is none. */
  readonly last: number;
  readonly properties: readonly LakeField[];
}

const tableColumns = sql`environment_id as "environmentId", name, folder, location, version, fields`;

const isTable = ({ environmentId, name }: TableKey) =>
  sql`environment_id = ${environmentId} and name = ${name}`;

/** Makes it if it is missing. */
export async function openTable(db: Database, key: TableKey): Promise<LakeTable> {
  const table = await firstRow<LakeTable>(db)`
    with made as (
      insert into lake_tables (environment_id, name, folder)
      values (${key.environmentId}, ${key.name}, ${uuidv7()})
      on conflict do nothing
      returning ${tableColumns}
    )
    select * from made
    union all
    select ${tableColumns} from lake_tables where ${isTable(key)}`;
  return table ?? openTable(db, key);
}

/** Returns false if others have changed the fields meanwhile. */
export async function setFields(
  db: Database,
  { fields, ...key }: LakeTable,
  next: TableFields,
): Promise<boolean> {
  const changed = await changedBy(db)`
    update lake_tables
    set fields = ${JSON.stringify(next)}::jsonb
    where ${isTable(key)} and fields = ${JSON.stringify(fields)}::jsonb`;
  return changed === 1;
}

/** Keeps others from committing to the table until the transaction ends. */
export async function lockTable(db: Database, key: TableKey): Promise<LakeTable> {
  await openTable(db, key);
  const table = await firstRow<LakeTable>(db)`
    select ${tableColumns} from lake_tables where ${isTable(key)} for update`;
  return table as LakeTable;
}

export async function setSnapshot(
  db: Database,
  table: LakeTable & { readonly metadataRef: FileRef },
): Promise<void> {
  const { location, version, metadataRef } = table;
  await sql`
    update lake_tables
    set location = ${location}, version = ${version}, metadata_ref = ${metadataRef}, changed_at = now()
    where ${isTable(table)}`.execute(db);
}

/** Tables whose metadata names another place than that of the file store. */
export function findMovedTables(db: Database, location: string): Promise<TableKey[]> {
  return rowsOf<TableKey>(db)`
    select environment_id as "environmentId", name
    from lake_tables
    where version > 0 and location <> ${location}`;
}
