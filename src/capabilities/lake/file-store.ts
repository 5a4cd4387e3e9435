import { type RawBuilder, sql } from 'kysely';
import type pg from 'pg';
import { TransientError } from '../../base/errors.ts';
import type { FileFacts } from '../../export/write/split-files.ts';
import type { FileRef } from '../../files/file-store.ts';
import { instantText } from '../../postgres/columns.ts';
import {
  changedBy,
  columnOf,
  type Database,
  findValue,
  inTransaction,
  rowsOf,
} from '../../postgres/database.ts';

export type LakeFileKind = 'data' | 'manifest' | 'list' | 'metadata';

interface NewFile {
  readonly environmentId: number;
  readonly kind: LakeFileKind;
  readonly ref: FileRef;
  /** YYYY-MM-DD. `null` for manifest lists and metadata, which cover all months. */
  readonly month: string | null;
  readonly retirementId: number | null;
}

/** Records a file before it is written, so that a killed process leaves no unknown file behind. */
export async function recordFile(
  db: Database,
  { environmentId, kind, ref, month, retirementId }: NewFile,
): Promise<void> {
  await sql`
    insert into lake_files (environment_id, kind, month, retirement_id, file_ref)
    values (${environmentId}, ${kind}, ${month}::date, ${retirementId}::bigint, ${ref})`.execute(db);
}

export interface WrittenFile {
  readonly ref: FileRef;
  readonly bytes: number;
  readonly rows: number;
  readonly sha256: string;
}

export interface DataFile extends WrittenFile {
  readonly fileId: number;
  readonly month: string;
  /** True if the events are also in `sluice.events`. */
  readonly isHot: boolean;
  /** Microseconds since 1970. */
  readonly firstMicros: number;
  readonly lastMicros: number;
}

/** Stores what is known about a written file. Does nothing if the file was abandoned. */
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
      filter = ${facts.filter}
    where file_ref = ${ref} and state = 'writing'`.execute(db);
}

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

export async function abandonUnfinished(db: Database, environmentId: number): Promise<void> {
  await sql`
    with raised as (
      -- A current reader of a month may have no file yet.
      update lake_months set revision = revision + 1 where environment_id = ${environmentId}
    )
    update lake_files
    set state = 'replaced'
    where environment_id = ${environmentId} and kind = 'data' and state = 'writing' and retirement_id is null`.execute(
    db,
  );
}

/** Thrown if a deletion or the sweep has abandoned a file while it was being written. */
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
  encode(sha256, 'hex') as sha256,
  ${microsOf('first_at')} as "firstMicros",
  ${microsOf('last_at')} as "lastMicros"`;

/** Files that may contain one of the hashed ids, or that have no filter. */
export async function findHolders(
  db: Database,
  files: readonly Pick<DataFile, 'fileId'>[],
  { hash, first, step, bits, blockBytes }: IdBits,
): Promise<ReadonlySet<number>> {
  const fileIds = await columnOf<number>(db)`
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
  return new Set(fileIds);
}

export interface IdBits {
  readonly hash: readonly number[];
  readonly first: readonly number[];
  readonly step: readonly number[];
  readonly bits: number;
  readonly blockBytes: number;
}

export function listData(
  db: Database,
  environmentId: number,
  month: string | null = null,
): Promise<DataFile[]> {
  return rowsOf<DataFile>(db)`
    select ${dataColumns}
    from lake_files
    where environment_id = ${environmentId} and kind = 'data' and state = 'stored'
      and month = coalesce(${month}::date, month)
    order by first_at, file_id`;
}

export async function replaceData(db: Database, { fileId }: Pick<DataFile, 'fileId'>): Promise<void> {
  const changed = await changedBy(db)`
    update lake_files set state = 'replaced' where file_id = ${fileId} and state = 'stored'`;
  if (changed !== 1) throw new TransientError('a file of the lake was replaced by somebody else');
}

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

/** Only manifests have a `month`. */
export async function replaceMetadata(
  db: Database,
  environmentId: number,
  kinds: readonly Exclude<LakeFileKind, 'data'>[],
  month: string | null,
): Promise<void> {
  await sql`
    update lake_files
    set state = 'replaced'
    where environment_id = ${environmentId} and kind = any(${[...kinds]}::text[]) and state = 'stored'
      and month is not distinct from ${month}::date`.execute(db);
}

export function listMonths(db: Database, environmentId: number): Promise<string[]> {
  return columnOf<string>(db)`
    select distinct month::text
    from lake_files
    where environment_id = ${environmentId} and kind in ('data', 'manifest') and state = 'stored'`;
}

export interface Manifest {
  readonly bytes: number;
  /** Version of the table that first contained this manifest. */
  readonly version: number;
  readonly month: string;
  readonly files: number;
  readonly rows: number;
}

export function listManifests(
  db: Database,
  environmentId: number,
): Promise<(Manifest & { readonly ref: FileRef })[]> {
  return rowsOf<Manifest & { readonly ref: FileRef }>(db)`
    select file_ref as ref, byte_count as bytes, version, month::text, file_count as files, row_count as rows
    from lake_files
    where environment_id = ${environmentId} and kind = 'manifest' and state = 'stored'
    order by month`;
}

export function findReplaced(db: Database): Promise<FileRef[]> {
  return refsWhere(db, sql`state = 'replaced'`);
}

/**
 * Finds the files that killed processes left behind. A running deletion may be writing a data file,
 * so a data file is included only after a day.
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

export async function forgetFile(db: Database, ref: FileRef): Promise<void> {
  await sql`delete from lake_files where file_ref = ${ref} and state <> 'stored'`.execute(db);
}

function microsOf(column: string): RawBuilder<number> {
  return sql`(extract(epoch from ${sql.ref(column)}) * 1000000)::bigint`;
}

function instantOf(micros: number): RawBuilder<Date> {
  return sql`(timestamptz 'epoch' + ${micros}::bigint * interval '1 microsecond')`;
}

/** Returns the time up to which events may be stored only in the lake, or may be moving there. */
export function findMovedUntil(db: Database, environmentId: number): Promise<string | null> {
  return findValue<string | null>(db)`
    select ${instantText(sql`greatest(
      (
        select max(last_at)
        from lake_files
        where environment_id = ${environmentId} and kind = 'data' and state = 'stored' and not is_hot
      ),
      (
        select max((month + interval '1 month') at time zone 'UTC')
        from event_retirements
        where state = 'retired' and archives
      )
    )`)} as until`;
}
