import { type RawBuilder, sql } from 'kysely';
import type { CsvHeader } from '../../formats/csv-header.ts';
import { camel } from '../columns.ts';
import { type Database, deleteWhere, rowsOf } from '../database.ts';

/*
 * Amendments are loads that mend refused records of another load, their parent. A record is refused → claimed by an amendment →
 * amended, or refused again, or released because the amendment ended otherwise. Each of these steps is a function here.
 */

/** Tells whether all changes since a cursor are in the log. */
export const isLogged = (cursor: RawBuilder<unknown>): RawBuilder<boolean> => sql<boolean>`coalesce(
  (select complete_since <= pg_snapshot_xmin(${cursor})::text::bigint from change_log),
  false
)`;

export const notLogged =
  'changes since this job ended are no longer kept (CHANGES_DAYS), so mended records cannot yield to them; with wins=true they win';

/** A load whose refused records are to be mended. */
export type Parent = NonNullable<Awaited<ReturnType<typeof readParent>>>;

/** Returns `null` if the environment has no such load. `amends` is the job that the load itself mends. */
export async function readParent(db: Database, environmentId: number, jobId: string) {
  const row = await db
    .selectFrom('loads')
    .leftJoin('loads as parent', 'parent.load_id', 'loads.amends')
    .select(camel('loads.load_id', 'loads.job_id', 'loads.type', 'loads.status', 'loads.failure_code'))
    .select(camel('loads.entity', 'loads.column_map', 'loads.preset', 'loads.file_format', 'loads.header'))
    .select(camel('loads.dry_run', 'loads.filename'))
    .select(['loads.source_options as source', 'parent.job_id as amends'])
    .select(isLogged(sql.ref('loads.end_cursor')).as('isLogged'))
    .where((eb) => eb.and({ 'loads.environment_id': environmentId, 'loads.job_id': jobId }))
    .executeTakeFirst();
  return row ?? null;
}

/** A row that could not be claimed. */
export interface Unclaimed {
  readonly row: number;
  /** The job that has claimed or amended it; `null`: it is no refused row of the parent. */
  readonly claimedBy: string | null;
}

const rowsPerStatement = 10_000;
const shownUnclaimed = 20;

/**
 * Claims refused rows of the parent for an amendment. Returns those that could not be claimed; then the caller must roll back. `rows`
 * ascend, so that two callers who want the same rows cannot deadlock.
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
    if (Number(numAffectedRows ?? 0) < some.length) return findUnclaimed(db, parentId, amendmentId, some);
  }
  return [];
}

function findUnclaimed(
  db: Database,
  parentId: number,
  amendmentId: number,
  rows: readonly number[],
): Promise<readonly Unclaimed[]> {
  return rowsOf<Unclaimed>(db)`
    select g.row, l.job_id as "claimedBy"
    from unnest(${rows}::bigint[]) g (row)
    left join load_amendments a on a.load_id = ${parentId} and a.row_number = g.row
    left join loads l on l.load_id = a.amended_by
    where a.amended_by is distinct from ${amendmentId}
    order by g.row
    limit ${shownUnclaimed}`;
}

/** Releases what an amendment had claimed that ended without completing; or, of one that completes, the rows of records that mend nothing. */
export async function releaseClaims(
  db: Database,
  amendmentId: number,
  records?: readonly { readonly record: number }[],
): Promise<void> {
  await deleteWhere(db, 'load_amendments', { amendedBy: amendmentId })
    .where('amended_at', 'is', null)
    .$if(records !== undefined, (claims) =>
      claims.where('amended_row', 'in', records?.map(({ record }) => record) ?? []),
    )
    .execute();
}

/** A claimed record that the amendment refused. */
export interface RefusedAgain {
  /** The record in the amendment's file. */
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
    select r.row_number as record, r.raw
    from load_rejects r
    join load_amendments a on a.amended_by = r.load_id and a.amended_row = r.row_number
    where r.load_id = ${amendmentId} and r.row_number > ${afterRecord}
    order by r.row_number
    limit ${limit}`.execute(db);
  return rows;
}

/**
 * Keeps records refused for the reason that the amendment found, with their new text (`raw`; `null`: unchanged), and lets them be mended
 * again.
 */
export async function refuseAgain(
  db: Database,
  amendmentId: number,
  refused: readonly { readonly record: number; readonly raw: Buffer | null }[],
): Promise<void> {
  const records = refused.map(({ record }) => record);
  const sent = refused.map(({ raw }) => raw);
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
    join unnest(${records}::bigint[], ${sent}::bytea[]) sent (record, raw)
      on sent.record = again.amended_row
    where r.load_id = again.load_id and r.row_number = again.row_number`.execute(db);
}

/**
 * Counts the rows that are still claimed as amended, and completes the parent, even if it had failed because all its records were
 * refused. The refused records are kept for `returnAmended`. Call it in the transaction that completes the amendment.
 */
export async function concludeClaims(db: Database, amendmentId: number): Promise<void> {
  await sql`
    with claimed as (
      update load_amendments
      set amended_at = now()
      where amended_by = ${amendmentId} and amended_at is null
      returning load_id, row_number
    ),
    moved as (
      delete from load_rejects r
      using claimed c
      where r.load_id = c.load_id and r.row_number = c.row_number
      returning r.*
    ),
    kept as (
      insert into amended_rejects select * from moved
    ),
    ${recounted(1)}`.execute(db);
}

/**
 * Returns the records that amendments had mended which no longer count to the refused ones of their parents, as they were; they may be
 * mended again. Records that are no longer kept stay amended. Call it in the transaction that completes the undo.
 */
export async function returnAmended(db: Database, amendments: readonly number[]): Promise<void> {
  await rowsOf(db)`
    update amended_rejects k
    set returned_from = a.amended_by, returned_row = a.amended_row
    from load_amendments a
    where a.amended_by = any(${amendments}::bigint[]) and k.load_id = a.load_id and k.row_number = a.row_number`;
  await sql`
    with moved as (
      delete from amended_rejects k
      using load_amendments a
      where a.amended_by = any(${amendments}::bigint[])
        and k.load_id = a.load_id
        and k.row_number = a.row_number
      returning k.*
    ),
    freed as (
      delete from load_amendments a
      using moved m
      where a.load_id = m.load_id and a.row_number = m.row_number
    ),
    returned as (
      insert into load_rejects select * from moved
    ),
    ${recounted(-1)}`.execute(db);
}

/** Takes them out of the refused ones when the amendments count again, but for those that others have mended or are about to. */
export async function amendReturned(db: Database, amendments: readonly number[]): Promise<void> {
  await sql`
    with moved as (
      delete from load_rejects r
      using loads a
      where a.load_id = any(${amendments}::bigint[])
        and r.load_id = a.amends
        and r.returned_from = a.load_id
        and not exists (select 1 from load_amendments m where m.load_id = r.load_id and m.row_number = r.row_number)
      returning r.*
    ),
    claimed as (
      insert into load_amendments (load_id, row_number, amended_by, amended_row, amended_at)
      select load_id, row_number, returned_from, returned_row, now()
      from moved
    ),
    kept as (
      insert into amended_rejects select * from moved
    ),
    ${recounted(1)}`.execute(db);
}

/** Deletes the refused records that are kept of amendments which cannot be undone any more. */
export async function forgetAmended(db: Database): Promise<void> {
  await sql`
    delete from amended_rejects k
    using load_amendments a
    where a.load_id = k.load_id
      and a.row_number = k.row_number
      and (a.amended_at >= (select complete_since_at from change_log)) is not true`.execute(db);
}

/** Ends a statement whose rejects `moved`: 1, from refused to amended, or -1, back. Counts them for their load, which is then completed. */
const recounted = (by: 1 | -1): RawBuilder<unknown> => sql`
    by_kind as (
      update load_kinds k
      set rows_rejected = k.rows_rejected - m.rows, rows_amended = k.rows_amended + m.rows
      from (select load_id, kind, count(*) * ${sql.lit(by)} as rows from moved group by load_id, kind) m
      where k.load_id = m.load_id and k.kind = m.kind
    ),
    counted as (
      update loads l
      set
        rows_rejected = l.rows_rejected - m.rows,
        rows_amended = l.rows_amended + m.rows,
        status = 'completed',
        failure_code = null,
        failure_message = null
      from (select load_id, count(*) * ${sql.lit(by)} as rows from moved group by load_id) m
      where l.load_id = m.load_id
    )
    select 1`;

/** Returns the headers that the rejects of an amendment and of its parent are written with; `null` for other loads. */
export async function readAmendmentShapes(
  db: Database,
  loadId: number,
): Promise<{ readonly header: CsvHeader | null; readonly parentHeader: CsvHeader | null } | null> {
  const row = await db
    .selectFrom('loads as l')
    .innerJoin('loads as parent', 'parent.load_id', 'l.amends')
    .select(['l.header', 'parent.header as parentHeader'])
    .where('l.load_id', '=', loadId)
    .executeTakeFirst();
  return row ?? null;
}
