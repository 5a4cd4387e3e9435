import { type RawBuilder, sql } from 'kysely';
import type pg from 'pg';
import { uuidv7 } from 'uuidv7';
import type { LakeField } from '../../domain/definitions.ts';
import { TransientError } from '../../domain/errors.ts';
import type { Dataset } from '../../domain/export.ts';
import type { FileRef, LakeFileKind } from '../../files/file-store.ts';
import {
  changedBy,
  columnOf,
  type Database,
  findValue,
  firstRow,
  inTransaction,
  rowsOf,
} from '../database.ts';
import { lockEventStore } from './retention.ts';

/** Names a table of the lake. */
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
const isOfTable = ({ environmentId, name }: TableKey) =>
  sql`environment_id = ${environmentId} and table_name = ${name}`;

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

interface NewFile extends TableKey {
  readonly kind: LakeFileKind;
  readonly ref: FileRef;
  /** YYYY-MM-DD; null for what belongs to all months, and for profiles. */
  readonly month: string | null;
  readonly retirementId: number | null;
}

/** Records a file before anything is written, so that what a killed process leaves is known. */
export async function recordFile(
  db: Database,
  { environmentId, name, kind, ref, month, retirementId }: NewFile,
): Promise<void> {
  await sql`
    insert into lake_files (environment_id, table_name, kind, month, retirement_id, file_ref)
    values (${environmentId}, ${name}, ${kind}, ${month}::date, ${retirementId}::bigint, ${ref})`.execute(db);
}

/** The statistics of a column in one file; bounds in Iceberg's encoding, as base64. */
export interface ColumnStatistics {
  readonly bytes: number;
  readonly nulls: number;
  readonly lower?: string;
  readonly upper?: string;
}

/** Parquet file of events. */
export interface DataFile {
  readonly fileId: number;
  readonly month: string;
  /** Its events are in `sluice.events` too, where our own exports read them. */
  readonly isHot: boolean;
  readonly ref: FileRef;
  readonly bytes: number;
  readonly rows: number;
  /** The times of its first and last event, in microseconds since 1970. */
  readonly firstMicros: number;
  readonly lastMicros: number;
  readonly statistics: Readonly<Record<string, ColumnStatistics>>;
}

export interface WrittenData
  extends Omit<DataFile, 'fileId' | 'month' | 'isHot' | 'firstMicros' | 'lastMicros'> {
  /** Set for events; `firstKey`: for profiles. */
  readonly firstMicros: number | null;
  readonly lastMicros: number | null;
  readonly firstKey?: string | null;
  /** Hex. */
  readonly sha256: string;
  /** A Bloom filter of the ids in it (src/lake/id-filter.ts). */
  readonly filter: Buffer;
  /** The sums of its row groups (`packSums`), of events only. */
  readonly sums?: Buffer;
}

/** Makes exports read the file, and the next commit name it. @throws AbandonedFile */
export async function storeData(db: Database, file: WrittenData, isHot = false): Promise<void> {
  const changed = await changedBy(db)`
    update lake_files
    set
      state = 'stored',
      is_hot = ${isHot},
      row_count = ${file.rows},
      byte_count = ${file.bytes},
      sha256 = decode(${file.sha256}, 'hex'),
      first_at = ${instantOf(file.firstMicros)},
      last_at = ${instantOf(file.lastMicros)},
      first_key = ${file.firstKey ?? null}::text,
      statistics = ${JSON.stringify(file.statistics)}::jsonb,
      filter = ${file.filter},
      sums = ${file.sums ?? null}
    where file_ref = ${file.ref} and state = 'writing'`;
  if (changed !== 1) throw new AbandonedFile();
}

/** Lets nobody take a file that is being written: it may hold what was deleted meanwhile. Retirements have a revision. */
export async function abandonUnfinished(db: Database, table: TableKey): Promise<void> {
  await sql`
    with raised as (
      -- What reads a month now may have no file yet.
      update lake_months
      set revision = revision + 1
      where environment_id = ${table.environmentId} and ${table.name}::text = 'events'
    )
    update lake_files
    set state = 'replaced'
    where ${isOfTable(table)} and kind = 'data' and state = 'writing' and retirement_id is null`.execute(db);
}

/** Thrown when a deletion or the sweep has given up a file that was being written. */
export class AbandonedFile extends TransientError {
  constructor() {
    super('a file of the lake was taken for one that nobody writes');
  }
}

const dataColumns = sql`
  file_id as "fileId",
  month::text,
  is_hot as "isHot",
  file_ref as ref,
  byte_count as bytes,
  row_count as rows,
  ${microsOf('first_at')} as "firstMicros",
  ${microsOf('last_at')} as "lastMicros",
  statistics`;

/** Reads the filter of the ids in a file; null: it may hold anybody. */
export function readFilter(db: Database, { fileId }: Pick<DataFile, 'fileId'>): Promise<Buffer | null> {
  return findValue<Buffer>(db)`select filter from lake_files where file_id = ${fileId}`;
}

export function readSums(db: Database, { fileId }: Pick<DataFile, 'fileId'>): Promise<Buffer | null> {
  return findValue<Buffer>(db)`select sums from lake_files where file_id = ${fileId}`;
}

/** Files with events in a range (`from` included, `to` not) that have left `sluice.events`, in the order of their first. */
export function findData(
  db: Database,
  environmentId: number,
  { from = null, to = null }: { readonly from?: string | null; readonly to?: string | null } = {},
): Promise<DataFile[]> {
  return listDataWhere(
    db,
    sql`${isOfTable({ environmentId, name: 'events' })}
      and not is_hot
      and last_at >= coalesce(${from}::timestamptz, '-infinity')
      and first_at < coalesce(${to}::timestamptz, 'infinity')`,
  );
}

/** `month`: null for profiles, undefined for all. */
export function listData(db: Database, key: TableKey, month?: string | null): Promise<DataFile[]> {
  const isOfMonth = month === undefined ? sql`true` : sql`month is not distinct from ${month}::date`;
  return listDataWhere(db, sql`${isOfTable(key)} and ${isOfMonth}`);
}

function listDataWhere(db: Database, condition: RawBuilder<unknown>): Promise<DataFile[]> {
  return rowsOf<DataFile>(db)`
    select ${dataColumns}
    from lake_files
    where kind = 'data' and state = 'stored' and ${condition}
    order by first_at, first_key, file_id`;
}

/** Makes later exports, and the next commit, leave the file out. */
export async function replaceData(db: Database, { fileId }: Pick<DataFile, 'fileId'>): Promise<void> {
  const changed = await changedBy(db)`
    update lake_files set state = 'replaced' where file_id = ${fileId} and state = 'stored'`;
  if (changed !== 1) throw new TransientError('a file of the lake was replaced by somebody else');
}

type MetadataKind = Exclude<LakeFileKind, 'data'>;

export async function storeMetadata(
  db: Database,
  file: {
    readonly ref: FileRef;
    readonly bytes: number;
    readonly version: number;
    readonly files: number | null;
    readonly rows: number | null;
  },
): Promise<void> {
  const { ref, bytes, version, files, rows } = file;
  const changed = await changedBy(db)`
    update lake_files
    set state = 'stored', byte_count = ${bytes}, version = ${version}, file_count = ${files}, row_count = ${rows}
    where file_ref = ${ref} and state = 'writing'`;
  if (changed !== 1) throw new AbandonedFile();
}

/** `month`: of manifests. */
export async function replaceMetadata(
  db: Database,
  key: TableKey,
  kinds: readonly MetadataKind[],
  month: string | null,
): Promise<void> {
  await sql`
    update lake_files
    set state = 'replaced'
    where ${isOfTable(key)} and kind = any(${[...kinds]}::text[]) and state = 'stored'
      and month is not distinct from ${month}::date`.execute(db);
}

export function listMonths(db: Database, key: TableKey): Promise<(string | null)[]> {
  return columnOf<string | null>(db)`
    select distinct month::text
    from lake_files
    where ${isOfTable(key)} and kind in ('data', 'manifest') and state = 'stored'`;
}

export interface Manifest {
  readonly bytes: number;
  /** The first version of the table that names it. */
  readonly version: number;
  /** YYYY-MM-DD; null of profiles. */
  readonly month: string | null;
  readonly files: number;
  readonly rows: number;
}

export function listManifests(
  db: Database,
  key: TableKey,
): Promise<(Manifest & { readonly ref: FileRef })[]> {
  return rowsOf<Manifest & { readonly ref: FileRef }>(db)`
    select file_ref as ref, byte_count as bytes, version, month::text, file_count as files, row_count as rows
    from lake_files
    where ${isOfTable(key)} and kind = 'manifest' and state = 'stored'
    order by month`;
}

export function findReplaced(db: Database): Promise<FileRef[]> {
  return refsWhere(db, sql`state = 'replaced'`);
}

/**
 * Files that killed processes left unfinished, if nobody moves events into the lake now. A deletion has a day to rewrite one; whoever
 * writes metadata holds the table locked.
 */
export function findUnfinished(pool: pg.Pool): Promise<FileRef[]> {
  return inTransaction(pool, async ({ db }) => {
    const folders = await columnOf<string>(db)`select folder from lake_tables for update skip locked`;
    return refsWhere(
      db,
      sql`state = 'writing' and case
        when kind <> 'data' then split_part(file_ref, '/', 2) = any(${folders}::text[])
        else retirement_id is not null or created_at < now() - interval '1 day'
      end`,
    );
  });
}

function refsWhere(db: Database, condition: RawBuilder<unknown>): Promise<FileRef[]> {
  return columnOf<FileRef>(db)`select file_ref from lake_files where ${condition} order by file_id`;
}

/** Keeps files that are replaced from being removed until the transaction ends. */
export async function keepFiles(db: Database): Promise<void> {
  await sql`lock table event_retirements in row share mode`.execute(db);
}

/** Waits for everybody who read a file before it was replaced. Throws 55P03 if that takes long. */
export async function awaitReaders(pool: pg.Pool): Promise<void> {
  await inTransaction(pool, ({ db }) => lockEventStore(db));
}

export async function forgetFile(db: Database, ref: FileRef): Promise<void> {
  await sql`delete from lake_files where file_ref = ${ref} and state <> 'stored'`.execute(db);
}

function microsOf(column: string): RawBuilder<number> {
  return sql`(extract(epoch from ${sql.ref(column)}) * 1000000)::bigint`;
}

function instantOf(micros: number | null): RawBuilder<Date> {
  return sql`(timestamptz 'epoch' + ${micros}::bigint * interval '1 microsecond')`;
}
