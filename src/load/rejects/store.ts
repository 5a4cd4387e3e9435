import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type RawBuilder, sql } from 'kysely';
import { from as copyFrom } from 'pg-copy-streams';
import { nextOf } from '../../base/pages.ts';
import { yielding } from '../../base/yielding.ts';
import type { ChunkRange, CountedKind, StoredFormat } from '../../domain/load.ts';
import {
  type CauseKey,
  causeColumn,
  type Reject,
  type RejectCause,
  type RejectCode,
} from '../../domain/reject.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import { escapeCopy } from '../../formats/json-text.ts';
import { camel } from '../../postgres/columns.ts';
import {
  changedBy,
  columnOf,
  countOf,
  type Database,
  firstRow,
  selectWhere,
  type Transaction,
} from '../../postgres/database.ts';
import { storedFormat } from '../chunk-store.ts';
import { MAX_SHOWN_MENDS } from '../limits.ts';
import { loadOf } from '../store.ts';

const rowsPerPiece = 1_000;

/** `kind` is `null` if the load does not count records by kind. */
export interface CountedReject {
  readonly reject: Reject;
  readonly kind: CountedKind | null;
}

interface RefusedFrom {
  readonly loadId: number;
  readonly isSecret: boolean;
}

/**
 * Inserts rejects with COPY. Compared with INSERT, this saves about as much time as determining the
 * causes takes.
 */
export async function insertRejects(
  { client }: Transaction,
  { loadId, isSecret }: RefusedFrom,
  rejects: readonly CountedReject[],
  causeOf: (reject: Reject) => RejectCause,
): Promise<void> {
  if (rejects.length === 0) return;
  const sink = client.query(copyFrom(`copy load_rejects (${copiedColumns}) from stdin`));
  const text = yielding(copyText(loadId, rejects, causeOf, isSecret));
  await pipeline(Readable.from(text, { objectMode: false }), sink);
}

const copiedColumns =
  'load_id, row_number, line_number, byte_offset, column_name, error_code, message, raw, kind, cause, shape';

function* copyText(
  loadId: number,
  rejects: readonly CountedReject[],
  causeOf: (reject: Reject) => RejectCause,
  isSecret: boolean,
): Generator<Buffer> {
  for (let at = 0; at < rejects.length; at += rowsPerPiece) {
    const lines = rejects.slice(at, at + rowsPerPiece).map(({ reject, kind }) => {
      const { row, line, byteOffset, column, code, raw } = reject;
      const message = (isSecret ? unquoted[code] : undefined) ?? reject.message;
      const { cause, shape } = causeOf(reject);
      const bytes = isSecret ? '' : Buffer.from(raw.buffer, raw.byteOffset, raw.length).toString('hex');
      const name = column === null ? '\\N' : copied(column);
      const place = `${loadId}\t${row}\t${line}\t${byteOffset}\t${name}`;
      return `${place}\t${code}\t${copied(message)}\t\\\\x${bytes}\t${kind ?? '\\N'}\t${cause}\t${copied(shape)}\n`;
    });
    yield Buffer.from(lines.join(''));
  }
}

const unquoted: { readonly [Code in RejectCode]?: string } = {
  invalid_json: 'The text is not valid JSON',
  unknown_event_type: 'The job does not take records of this kind',
  unexpected_event_row: 'The job does not take records of this kind',
  refused_by_database: 'The database refuses the record',
};

/** Escapes a text for COPY, and replaces characters that PostgreSQL cannot store. */
function copied(text: string): string {
  return escapeCopy(text.toWellFormed().replaceAll('\0', '␀'));
}

/**
 * Returns the numbers of the refused rows. Reading the chunk again cannot find these rows, because
 * it might accept some of them.
 */
export async function readRefusedRows(
  db: Database,
  loadId: number,
  { firstRow, rowCount }: ChunkRange,
): Promise<ReadonlySet<number>> {
  const rows = await columnOf<number>(db)`
    select row_number
    from load_rejects
    where load_id = ${loadId} and row_number >= ${firstRow} and row_number < ${firstRow + rowCount}`;
  return new Set(rows);
}

export interface RejectsSource {
  readonly loadId: number;
  readonly format: StoredFormat;
  readonly header: CsvHeader | null;
}

/**
 * Finds the load of a job, and the format of its file. Returns `null` if the environment has no
 * such job.
 */
export async function readRejectsSource(
  db: Database,
  environmentId: number,
  jobId: string,
): Promise<RejectsSource | null> {
  const row = await loadOf(db, environmentId, jobId)
    .select(['load_id as loadId', 'header'])
    .select(storedFormat.as('format'))
    .executeTakeFirst();
  return row ?? null;
}

const rejectColumns = sql`
  row_number as row, line_number as line, byte_offset as "byteOffset",
  column_name as column, error_code as code, message`;

export function readFirstReject(db: Database, loadId: number, code: string): Promise<Reject | null> {
  return firstRow<Reject>(db)`
    select ${rejectColumns}, raw
    from load_rejects
    where load_id = ${loadId} and error_code = ${code}
    order by row_number
    limit 1`;
}

interface RejectsBounds {
  readonly rows: number;
  /**
   * Approximate maximum size of a page. The last record may exceed this size, so a page is never
   * empty.
   */
  readonly bytes: number;
  readonly rawBytes: number;
}

export interface ReadRejects {
  readonly rejects: readonly (Reject & { readonly isCut: boolean })[];
  /** Last row of this page, after which the next page begins. `null` on the last page. */
  readonly next: number | null;
}

const rowBytes = 512;

/**
 * Reads a page of rejects in file order. The database limits the number of bytes without reading
 * the records.
 */
export async function readRejectsPage(
  db: Database,
  loadId: number,
  afterRow: number,
  { rows: limit, bytes, rawBytes }: RejectsBounds,
  cause: number | null = null,
): Promise<ReadRejects> {
  const ofCause = cause === null ? sql`` : sql`and cause = ${cause}`;
  const { rows } = await sql<Reject & { isCut: boolean; found: number }>`
    select ${rejectColumns}, found,
      octet_length(raw) > ${rawBytes} as "isCut",
      substring(raw from 1 for ${rawBytes}) as raw
    from (
      select *, count(*) over () as found,
        sum(least(octet_length(raw), ${rawBytes}) + ${rowBytes}) over (order by row_number)
          - least(octet_length(raw), ${rawBytes}) - ${rowBytes} as bytes_before
      from (
        select *
        from load_rejects
        where load_id = ${loadId} and row_number > ${afterRow} ${ofCause}
        order by row_number
        limit ${limit + 1}
      ) candidates
    ) measured
    where bytes_before < ${bytes}
    order by row_number
    limit ${limit}`.execute(db);
  const rejects = rows.map(({ found: _, ...reject }) => reject);
  return { rejects, next: nextOf(rejects, (rows[0]?.found ?? 0) > rows.length, ({ row }) => row) };
}

export function countOfCause(db: Database, loadId: number, cause: number): Promise<number> {
  return countOf(db)`select count(*) from load_rejects where load_id = ${loadId} and cause = ${cause}`;
}

export interface CountedCause extends CauseKey {
  readonly cause: number;
  readonly count: number;
  readonly firstRow: number;
}

interface CountedCauses {
  /** Most frequent first. */
  readonly shown: readonly CountedCause[];
  readonly causes: number;
  readonly records: number;
}

export async function countCauses(db: Database, loadId: number, limit: number): Promise<CountedCauses> {
  const { rows } = await sql<CountedCause & { causes: number; records: number }>`
    select shown.cause, shown.count, shown.first_row as "firstRow", shown.causes, shown.records,
      error_code as code, column_name as column, shape
    from (
      select *, count(*) over () as causes, (sum(count) over ())::bigint as records
      from (
        select cause, count(*) as count, min(row_number) as first_row
        from load_rejects
        where load_id = ${loadId}
        group by cause
      ) counted
      order by count desc, first_row
      limit ${limit}
    ) shown
    join load_rejects first on first.load_id = ${loadId} and first.row_number = shown.first_row
    order by count desc, first_row`.execute(db);
  const { causes = 0, records = 0 } = rows[0] ?? {};
  const shown = rows.map(({ cause, count, firstRow, code, column, shape }) => {
    return { cause, count, firstRow, code, column: causeColumn({ code, column }), shape };
  });
  return { shown, causes, records };
}

export function deleteRejects(db: Database, loadId: number, rows: readonly number[]): Promise<number> {
  return changedBy(db)`
    delete from load_rejects where load_id = ${loadId} and row_number = any (${[...rows]}::bigint[])`;
}

/* A mend is a load of corrected rejects: each of its records corrects a refused record. */

export type Mended = NonNullable<Awaited<ReturnType<typeof readMended>>>;

/** How a load read its file. `null` if there is no such load, or if it wrote its own file. */
export async function readMended(db: Database, environmentId: number, jobId: string) {
  const row = await selectWhere(db, 'loads', { environmentId, jobId })
    .select(camel('job_id', 'load_id', 'entity', 'preset', 'header'))
    .select('column_map as map')
    .where('own_file', '=', false)
    .executeTakeFirst();
  if (row === undefined) return null;
  const { header, ...columns } = row;
  return { ...columns, types: header?.types };
}

/**
 * The load whose rejects this load corrects, and the file of this load. `null` if one of them does
 * not exist, or if the pass does not load records.
 */
export async function readMending(db: Database, loadId: number) {
  const row = await db
    .selectFrom('loads')
    .innerJoin('load_lineage', 'load_lineage.load_id', 'loads.load_id')
    .innerJoin('loads as mended', 'mended.load_id', 'load_lineage.mends')
    .select(camel('mended.load_id', 'mended.job_id', 'loads.header', 'loads.file_ref'))
    .where('loads.load_id', '=', loadId)
    .where('loads.pass', '=', 'load')
    .executeTakeFirst();
  const fileRef = row?.fileRef ?? null;
  return row === undefined || fileRef === null ? null : { ...row, fileRef };
}

export interface MendedRow {
  readonly row: number;
  readonly mendedRow: number;
}

export async function insertMends(
  db: Database,
  mendedBy: number,
  loadId: number,
  rows: readonly MendedRow[],
): Promise<void> {
  const [numbers, mendedNumbers] = [rows.map(({ row }) => row), rows.map(({ mendedRow }) => mendedRow)];
  await sql`
    insert into load_mends (load_id, row_number, mended_by, mended_row)
    select ${loadId}, row_number, ${mendedBy}, mended_row
    from unnest(${numbers}::bigint[], ${mendedNumbers}::bigint[]) as r (row_number, mended_row)
    on conflict do nothing`.execute(db);
}

export interface LoadedSince {
  readonly count: number;
  readonly jobs: readonly string[];
}

/**
 * Refused records of a load that have since been loaded from corrected files, and the jobs that
 * loaded them. A record that was refused and corrected several times counts as well. Corrections by
 * jobs that were taken back do not count.
 */
export const loadedSince = (load: RawBuilder<unknown>): RawBuilder<LoadedSince> => sql`(
  select json_build_object(
    'count', count(distinct m.row_number),
    'jobs', coalesce((array_agg(distinct l.job_id))[:${sql.lit(MAX_SHOWN_MENDS)}], '{}')
  )
  from mended_since(${load}) m
  join loads l on l.load_id = m.mended_by
)`;
