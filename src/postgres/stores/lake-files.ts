import { type RawBuilder, sql } from 'kysely';
import type pg from 'pg';
import { TransientError } from '../../domain/errors.ts';
import type { FileRef, LakeFileKind } from '../../files/file-store.ts';
import { changedBy, columnOf, type Database, findValue, inTransaction, rowsOf } from '../database.ts';
import type { TableKey } from './lake-tables.ts';
import { lockEventStore } from './retention.ts';

const isOfTable = ({ environmentId, name }: TableKey) =>
  sql`environment_id = ${environmentId} and table_name = ${name}`;

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
  /** Its events are in `sluice.events` too. */
  readonly isHot: boolean;
  readonly ref: FileRef;
  readonly bytes: number;
  readonly rows: number;
  /** The times of its first and last event, in microseconds since 1970. */
  readonly firstMicros: number;
  readonly lastMicros: number;
  readonly statistics: Readonly<Record<string, ColumnStatistics>>;
}

/** What is known of a data file from its rows. */
export interface FileFacts {
  readonly statistics: DataFile['statistics'];
  /** A Bloom filter of the ids in it (src/lake/id-filter.ts). */
  readonly filter: Buffer;
  /** Of events: the sums of its row groups (`packSums`), and the content hash of all of them. */
  readonly sums: Buffer | null;
  readonly content: string | null;
  readonly firstMicros: number | null;
  readonly lastMicros: number | null;
  /** Of profiles: the first id. */
  readonly firstKey: string | null;
}

export interface WrittenFile {
  readonly ref: FileRef;
  readonly bytes: number;
  readonly rows: number;
  /** Hex. */
  readonly sha256: string;
}

/** Notes what a complete file holds; it is still nobody's. Does nothing if it was given up meanwhile. */
export async function describeData(
  db: Database,
  { ref, bytes, rows, sha256 }: WrittenFile,
  facts: FileFacts,
): Promise<void> {
  await sql`
    update lake_files
    set
      row_count = ${rows},
      byte_count = ${bytes},
      sha256 = decode(${sha256}, 'hex'),
      first_at = ${instantOf(facts.firstMicros)},
      last_at = ${instantOf(facts.lastMicros)},
      first_key = ${facts.firstKey}::text,
      statistics = ${JSON.stringify(facts.statistics)}::jsonb,
      filter = ${facts.filter},
      sums = ${facts.sums}
    where file_ref = ${ref} and state = 'writing'`.execute(db);
}

/** Makes the next commit name the files. @throws AbandonedFile */
export async function storeData(
  db: Database,
  files: readonly Pick<WrittenFile, 'ref'>[],
  isHot = false,
): Promise<void> {
  const refs = files.map(({ ref }) => ref);
  const changed = await changedBy(db)`
    update lake_files
    set state = 'stored', is_hot = ${isHot}
    where file_ref = any(${refs}::text[]) and state = 'writing'`;
  if (changed !== refs.length) throw new AbandonedFile();
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

/** Returns the files that may hold one of the ids with these bits (src/lake/id-filter.ts). A file without a filter may hold anybody. */
export async function findHolders(
  db: Database,
  files: readonly { readonly fileId: number | null }[],
  { hash, first, step, bits, blockBytes }: IdBits,
): Promise<ReadonlySet<number>> {
  const found = await columnOf<number>(db)`
    select file_id
    from lake_files
    where file_id = any(${files.map(({ fileId }) => fileId)}::bigint[])
      and (filter is null or exists (
        select 1
        from unnest(${hash}::bigint[], ${first}::int[], ${step}::int[]) as id (hash, first, step)
        cross join lateral (
          select substr(filter, 1 + ${blockBytes} * (hash & (octet_length(filter) / ${blockBytes} - 1))::int, ${blockBytes}) as block
          -- Evaluated once.
          offset 0
        ) b
        where not exists (
          select 1
          from generate_series(0, ${bits} - 1) n
          where get_bit(block, (first + n * step) & (8 * ${blockBytes} - 1)) = 0
        )
      ))`;
  return new Set(found);
}

/** Where the bits of ids are in filters. */
export interface IdBits {
  readonly hash: readonly number[];
  readonly first: readonly number[];
  readonly step: readonly number[];
  readonly bits: number;
  readonly blockBytes: number;
}

export function readSums(db: Database, { fileId }: Pick<DataFile, 'fileId'>): Promise<Buffer | null> {
  return findValue<Buffer>(db)`select sums from lake_files where file_id = ${fileId}`;
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

/** Makes the next commit leave the file out. */
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
