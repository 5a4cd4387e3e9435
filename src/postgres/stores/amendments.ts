import { sql } from 'kysely';
import type { LoadEntity } from '../../domain/entity.ts';
import type { ChunkRange, LoadStatus, LoadType, Preset, StoredFormat } from '../../domain/load.ts';
import type { SourceOptions } from '../../domain/source.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import type { Database } from '../database.ts';

/*
 * Amendments: loads that mend refused records of another, their parent. A record is refused → claimed by an amendment → amended, or
 * refused again, or free again because the amendment ended otherwise. Every one of these steps is a function here; the loads
 * themselves are in `loads.ts`.
 */

/** A load whose refused records are to be mended. */
export interface Parent {
  readonly loadId: number;
  readonly jobId: string;
  readonly type: LoadType;
  readonly status: LoadStatus;
  readonly failureCode: string | null;
  readonly dryRun: boolean;
  /** It mends another's itself: that one's job. */
  readonly amends: string | null;
  readonly hasFile: boolean;
  readonly entity: LoadEntity;
  readonly columnMap: Readonly<Record<string, string>>;
  readonly preset: Preset | null;
  readonly source: SourceOptions;
  readonly fileFormat: StoredFormat;
  readonly header: CsvHeader | null;
  readonly filename: string;
}

/** Null if the environment has no such load. */
export async function readParent(db: Database, environmentId: number, jobId: string): Promise<Parent | null> {
  const row = await db
    .selectFrom('loads')
    .leftJoin('loads as parent', 'parent.load_id', 'loads.amends')
    .select([
      'loads.load_id',
      'loads.type',
      'loads.status',
      'loads.failure_code',
      'loads.dry_run',
      'parent.job_id as amends',
      'loads.file_ref',
      'loads.entity',
      'loads.column_map',
      'loads.preset',
      'loads.source_options',
      'loads.file_format',
      'loads.header',
      'loads.filename',
    ])
    .where('loads.environment_id', '=', environmentId)
    .where('loads.job_id', '=', jobId)
    .executeTakeFirst();
  if (row === undefined) return null;
  return {
    loadId: row.load_id,
    jobId,
    type: row.type as LoadType,
    status: row.status as LoadStatus,
    failureCode: row.failure_code,
    dryRun: row.dry_run,
    amends: row.amends,
    hasFile: row.file_ref !== null,
    entity: row.entity as LoadEntity,
    columnMap: row.column_map as Readonly<Record<string, string>>,
    preset: row.preset as Preset | null,
    source: row.source_options as SourceOptions,
    fileFormat: row.file_format as StoredFormat,
    header: row.header as CsvHeader | null,
    filename: row.filename,
  };
}

/** A row that could not be claimed. */
export interface Unclaimed {
  /** Number of its record in the file of the amendment, from 1. */
  readonly record: number;
  readonly row: number;
  /** The job that has claimed or amended it; null: it is no refused row of the parent. */
  readonly claimedBy: string | null;
}

const rowsPerStatement = 10_000;
const shownUnclaimed = 20;

/**
 * Claims refused rows of the parent for an amendment, all or, if any are returned, not all: then the caller rolls back. `rows` ascend,
 * so that of two callers who want the same one waits for the other and never each for each.
 */
export async function claimRows(
  db: Database,
  parentId: number,
  amendmentId: number,
  rows: readonly number[],
): Promise<readonly Unclaimed[]> {
  for (let at = 0; at < rows.length; at += rowsPerStatement) {
    const some = rows.slice(at, at + rowsPerStatement);
    const { numAffectedRows } = await sql`
      insert into load_amendments (load_id, row_number, amended_by, amended_row)
      select r.load_id, r.row_number, ${amendmentId}, ${at} + g.record
      from unnest(${some}::bigint[]) with ordinality g (row_number, record)
      join load_rejects r on r.load_id = ${parentId} and r.row_number = g.row_number
      order by r.row_number
      on conflict (load_id, row_number) do nothing`.execute(db);
    if (Number(numAffectedRows ?? 0) < some.length) return findUnclaimed(db, parentId, amendmentId, some, at);
  }
  return [];
}

async function findUnclaimed(
  db: Database,
  parentId: number,
  amendmentId: number,
  rows: readonly number[],
  before: number,
): Promise<readonly Unclaimed[]> {
  const { rows: unclaimed } = await sql<Unclaimed>`
    select ${before} + g.record as record, g.row_number as row, l.job_id as "claimedBy"
    from unnest(${rows}::bigint[]) with ordinality g (row_number, record)
    left join load_amendments a on a.load_id = ${parentId} and a.row_number = g.row_number
    left join loads l on l.load_id = a.amended_by
    where a.amended_by is distinct from ${amendmentId}
    order by g.record
    limit ${shownUnclaimed}`.execute(db);
  return unclaimed;
}

/** The amendment ended without completing: what it had claimed is free again. Nothing, of a load that amends nothing. */
export async function releaseClaims(db: Database, amendmentId: number): Promise<void> {
  await db
    .deleteFrom('load_amendments')
    .where('amended_by', '=', amendmentId)
    .where('amended_at', 'is', null)
    .execute();
}

/** Releases the rows claimed by records of the amendment that mend nothing. */
export async function releaseRecords(
  db: Database,
  amendmentId: number,
  records: readonly { readonly record: number }[],
): Promise<void> {
  await db
    .deleteFrom('load_amendments')
    .where('amended_by', '=', amendmentId)
    .where(
      'amended_row',
      'in',
      records.map(({ record }) => record),
    )
    .execute();
}

/** A claimed record that the amendment refused. */
export interface RefusedAgain {
  /** Of the parent. */
  readonly row: number;
  /** Of the amendment. */
  readonly record: number;
  readonly raw: Buffer;
}

export async function readRefusedAgain(
  db: Database,
  amendmentId: number,
  afterRecord: number,
  limit: number,
): Promise<readonly RefusedAgain[]> {
  const { rows } = await sql<RefusedAgain>`
    select a.row_number as row, r.row_number as record, r.raw
    from load_rejects r
    join load_amendments a on a.amended_by = r.load_id and a.amended_row = r.row_number
    where r.load_id = ${amendmentId} and r.row_number > ${afterRecord}
    order by r.row_number
    limit ${limit}`.execute(db);
  return rows;
}

/**
 * Records stay refused, for the reason that the amendment found, as they were sent now (`raw`; null: as they were), and may be mended
 * again.
 */
export async function refuseAgain(
  db: Database,
  amendmentId: number,
  refused: readonly { readonly record: number; readonly raw: Buffer | null }[],
): Promise<void> {
  const records = refused.map(({ record }) => record);
  await sql`
    with again as (
      delete from load_amendments
      where amended_by = ${amendmentId} and amended_row = any(${records}::bigint[])
      returning load_id, row_number, amended_row
    )
    update load_rejects r
    set
      column_name = found.column_name,
      error_code = found.error_code,
      message = found.message,
      cause = found.cause,
      shape = found.shape,
      raw = coalesce(sent.raw, r.raw)
    from again
    join load_rejects found on found.load_id = ${amendmentId} and found.row_number = again.amended_row
    join unnest(${records}::bigint[], ${refused.map(({ raw }) => raw)}::bytea[]) sent (record, raw)
      on sent.record = again.amended_row
    where r.load_id = again.load_id and r.row_number = again.row_number`.execute(db);
}

/**
 * What is still claimed counts as amended, in the parent too: it is completed, also if it had failed because all its records were
 * refused. Returns how many rows that are. Call it in the transaction that completes the amendment.
 */
export async function concludeClaims(db: Database, parentId: number, amendmentId: number): Promise<number> {
  const { rows } = await sql<{ amended: number }>`
    with claimed as (
      update load_amendments
      set amended_at = now()
      where amended_by = ${amendmentId} and amended_at is null
      returning load_id, row_number
    ),
    mended as (
      delete from load_rejects r
      using claimed c
      where r.load_id = c.load_id and r.row_number = c.row_number
      returning r.kind
    ),
    by_kind as (
      update load_kinds k
      set rows_rejected = k.rows_rejected - m.mended, rows_amended = k.rows_amended + m.mended
      from (select kind, count(*) as mended from mended group by kind) m
      where k.load_id = ${parentId} and k.kind = m.kind
    ),
    counted as (
      update loads
      set
        rows_rejected = rows_rejected - m.mended,
        rows_amended = rows_amended + m.mended,
        status = 'completed',
        failure_code = null,
        failure_message = null
      from (select count(*) as mended from mended) m
      where load_id = ${parentId} and m.mended > 0
    )
    select count(*)::int as amended
    from mended`.execute(db);
  return rows[0]?.amended ?? 0;
}

/** What the rejects of an amendment, and of its parent, are written like. */
export interface AmendmentShapes {
  readonly parentId: number;
  readonly header: CsvHeader | null;
  readonly parentHeader: CsvHeader | null;
}

/** Null if the load amends nothing. */
export async function readAmendmentShapes(db: Database, loadId: number): Promise<AmendmentShapes | null> {
  const row = await db
    .selectFrom('loads as l')
    .innerJoin('loads as parent', 'parent.load_id', 'l.amends')
    .select(['parent.load_id', 'l.header', 'parent.header as parent_header'])
    .where('l.load_id', '=', loadId)
    .executeTakeFirst();
  if (row === undefined) return null;
  return {
    parentId: row.load_id,
    header: row.header as CsvHeader | null,
    parentHeader: row.parent_header as CsvHeader | null,
  };
}

/** Rows of the parent by the records of a chunk of the amendment that mend them; those that are free again are absent. */
export async function readPlaces(
  db: Database,
  amendmentId: number,
  { firstRow, rowCount }: ChunkRange,
): Promise<ReadonlyMap<number, number>> {
  const rows = await db
    .selectFrom('load_amendments')
    .select(['amended_row', 'row_number'])
    .where('amended_by', '=', amendmentId)
    .where('amended_row', '>=', firstRow)
    .where('amended_row', '<', firstRow + rowCount)
    .execute();
  return new Map(rows.map((row) => [row.amended_row, row.row_number]));
}

/** Rows of a chunk that amendments mend, or have mended: they count by these. */
export async function readAmendedRowsOf(
  db: Database,
  loadId: number,
  { firstRow, rowCount }: ChunkRange,
): Promise<ReadonlySet<number>> {
  const rows = await db
    .selectFrom('load_amendments')
    .select('row_number')
    .where('load_id', '=', loadId)
    .where('row_number', '>=', firstRow)
    .where('row_number', '<', firstRow + rowCount)
    .execute();
  return new Set(rows.map((row) => row.row_number));
}

/** A load whose records may stand later than those of an amendment. */
export interface LaterLoad {
  readonly loadId: number;
  /** The parent itself; a sibling, another of its amendments, whose records have places in the parent's file; or after all of these. */
  readonly position: 'parent' | 'sibling' | 'after';
}

/**
 * The parent, its other amendments, and what was loaded between the parent and the amendment, which runs now. An amendment of another
 * load stands where that one stands, unless it wins.
 */
export async function findLater(
  db: Database,
  parentId: number,
  amendmentId: number,
): Promise<readonly LaterLoad[]> {
  const { rows } = await sql<LaterLoad>`
    select
      l.load_id as "loadId",
      case
        when l.load_id = p.load_id then 'parent'
        when l.amends = p.load_id and not l.wins then 'sibling'
        else 'after'
      end as position
    from loads p
    join loads own on own.load_id = ${amendmentId}
    join loads l on l.environment_id = p.environment_id and l.load_id <> own.load_id
    left join loads other on other.load_id = l.amends and not l.wins
    where p.load_id = ${parentId}
      and not l.dry_run
      and l.rows_read > 0
      and l.lane_position < own.lane_position
      and (
        l.load_id = p.load_id
        or l.amends = p.load_id
        or coalesce(other.lane_position, l.lane_position) > p.lane_position
      )
    order by l.lane_position`.execute(db);
  return rows;
}
