import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { sql } from 'kysely';
import { from as copyFrom } from 'pg-copy-streams';
import { type CauseKey, causeColumn, type RejectCause } from '../../domain/cause.ts';
import type { ChunkRange, CountedKind, StoredFormat } from '../../domain/load.ts';
import type { Reject, RejectCode } from '../../domain/reject.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import { yielding } from '../../yielding.ts';
import type { Database, Transaction } from '../database.ts';

const rowsPerPiece = 1_000;

/** A reject, and the kind it is counted under; null where kinds are not counted. */
export interface CountedReject {
  readonly reject: Reject;
  readonly kind: CountedKind | null;
}

/**
 * Keeps refused records; call it inside the chunk's transaction. By COPY: what it saves of this process's time, compared with
 * INSERT, pays for the causes.
 */
export async function insertRejects(
  { client }: Pick<Transaction, 'client'>,
  loadId: number,
  rejects: readonly CountedReject[],
  causeOf: (reject: Reject) => RejectCause,
): Promise<void> {
  if (rejects.length === 0) return;
  const sink = client.query(copyFrom(`copy load_rejects (${copiedColumns}) from stdin`));
  const text = yielding(copyText(loadId, rejects, causeOf));
  await pipeline(Readable.from(text, { objectMode: false }), sink);
}

const copiedColumns = [
  'load_id',
  'row_number',
  'line_number',
  'byte_offset',
  'column_name',
  'error_code',
  'message',
  'raw',
  'kind',
  'cause',
  'shape',
].join();

function* copyText(
  loadId: number,
  rejects: readonly CountedReject[],
  causeOf: (reject: Reject) => RejectCause,
): Generator<Buffer> {
  for (let at = 0; at < rejects.length; at += rowsPerPiece) {
    const lines = rejects.slice(at, at + rowsPerPiece).map(({ reject, kind }) => {
      const { row, line, byteOffset, column, code, message, raw } = reject;
      const { cause, shape } = causeOf(reject);
      const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.length).toString('hex');
      const name = column === null ? '\\N' : copied(column);
      const place = `${loadId}\t${row}\t${line}\t${byteOffset}\t${name}`;
      return `${place}\t${code}\t${copied(message)}\t\\\\x${bytes}\t${kind ?? '\\N'}\t${cause}\t${copied(shape)}\n`;
    });
    yield Buffer.from(lines.join(''));
  }
}

const copyEscapes: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
  '\0': '␀',
};

/** Text as COPY reads it, with nothing in it that PostgreSQL cannot keep. */
function copied(text: string): string {
  return text.toWellFormed().replace(/[\\\t\n\r\0]/g, (found) => copyEscapes[found] ?? found);
}

/** Numbers of the chunk's rows that the database refused, though they had passed all checks. */
export async function readRefusedRows(
  db: Database,
  loadId: number,
  { firstRow, rowCount }: ChunkRange,
): Promise<ReadonlySet<number>> {
  const rows = await db
    .selectFrom('load_rejects')
    .select('row_number')
    .where('load_id', '=', loadId)
    .where('error_code', '=', 'refused_by_database')
    .where('row_number', '>=', firstRow)
    .where('row_number', '<', firstRow + rowCount)
    .execute();
  return new Set(rows.map((row) => row.row_number));
}

/** What must be known of a load to write its rejects in the shape of its file. */
export interface RejectsSource {
  readonly loadId: number;
  readonly format: StoredFormat;
  readonly header: CsvHeader | null;
}

/** Null if the environment has no such job. */
export async function readRejectsSource(
  db: Database,
  environmentId: number,
  jobId: string,
): Promise<RejectsSource | null> {
  const row = await db
    .selectFrom('loads')
    .select(['load_id', 'file_format', 'header'])
    .where('environment_id', '=', environmentId)
    .where('job_id', '=', jobId)
    .executeTakeFirst();
  if (row === undefined) return null;
  return {
    loadId: row.load_id,
    format: row.file_format as StoredFormat,
    header: row.header as CsvHeader | null,
  };
}

/** The first reject of that code; null if there is none. */
export async function readFirstReject(db: Database, loadId: number, code: string): Promise<Reject | null> {
  const row = await db
    .selectFrom('load_rejects')
    .select(['row_number', 'line_number', 'byte_offset', 'column_name', 'error_code', 'message', 'raw'])
    .where('load_id', '=', loadId)
    .where('error_code', '=', code)
    .orderBy('row_number')
    .limit(1)
    .executeTakeFirst();
  return row === undefined ? null : toReject(row);
}

/** How much of the rejects of a load is read at a time. */
export interface RejectsBounds {
  readonly rows: number;
  /** Of the records, roughly; the last may go beyond it, so that there always is one. */
  readonly bytes: number;
  /** Of each record; what is longer is cut. */
  readonly rawBytes: number;
}

export interface ReadRejects {
  readonly rejects: readonly (Reject & { readonly isCut: boolean })[];
  /** Others follow. */
  readonly more: boolean;
}

/** What a row takes besides its record. */
const rowBytes = 512;

/**
 * Rejects of rows after `afterRow`, in file order; with a `cause`, only those. The database adds the bytes up, which it knows without reading the records:
 * what is beyond the bounds is never sent.
 */
export async function readRejectsPage(
  db: Database,
  loadId: number,
  afterRow: number,
  { rows: limit, bytes, rawBytes }: RejectsBounds,
  cause: number | null = null,
): Promise<ReadRejects> {
  const ofCause = cause === null ? sql`` : sql`and cause = ${cause}`;
  const { rows } = await sql<MeasuredReject>`
    select row_number, line_number, byte_offset, column_name, error_code, message, found,
      octet_length(raw) > ${rawBytes} as is_cut,
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
  return {
    rejects: rows.map((row) => ({ ...toReject(row), isCut: row.is_cut })),
    more: (rows[0]?.found ?? 0) > rows.length,
  };
}

/** Returns the rejects of these rows; rows that are not, or no longer, refused are left out. */
export async function readRejectsOf(
  db: Database,
  loadId: number,
  rows: readonly number[],
): Promise<Reject[]> {
  const found = await sql<RejectRow>`
    select row_number, line_number, byte_offset, column_name, error_code, message, raw
    from load_rejects
    where load_id = ${loadId} and row_number = any(${rows}::bigint[])`.execute(db);
  return found.rows.map(toReject);
}

/** The last of a cause, in file order, as far as they go beyond `afterRow` and the bounds. */
export async function readLastRejects(
  db: Database,
  loadId: number,
  afterRow: number,
  { rows: limit, rawBytes }: Omit<RejectsBounds, 'bytes'>,
  cause: number,
): Promise<Reject[]> {
  const { rows } = await sql<RejectRow>`
    select row_number, line_number, byte_offset, column_name, error_code, message,
      substring(raw from 1 for ${rawBytes}) as raw
    from load_rejects
    where load_id = ${loadId} and row_number > ${afterRow} and cause = ${cause}
    order by row_number desc
    limit ${limit}`.execute(db);
  return rows.toReversed().map(toReject);
}

export async function countOfCause(db: Database, loadId: number, cause: number): Promise<number> {
  const { count } = await db
    .selectFrom('load_rejects')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('load_id', '=', loadId)
    .where('cause', '=', cause)
    .executeTakeFirstOrThrow();
  return count;
}

/** Refused records of a load that share a cause. */
export interface CountedCause extends CauseKey {
  readonly cause: number;
  readonly count: number;
  /** The first of them, in file order. */
  readonly firstRow: number;
}

export interface CountedCauses {
  /** The most frequent first. */
  readonly shown: readonly CountedCause[];
  /** How many causes there are, and records of all of them. */
  readonly causes: number;
  readonly records: number;
}

/** The causes of a load's rejects, at most `limit` of them. */
export async function countCauses(db: Database, loadId: number, limit: number): Promise<CountedCauses> {
  const { rows } = await sql<CauseRow>`
    select shown.*, error_code, column_name, shape
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
  return { shown: rows.map(toCause), causes: rows[0]?.causes ?? 0, records: rows[0]?.records ?? 0 };
}

interface CauseRow {
  readonly cause: number;
  readonly count: number;
  readonly first_row: number;
  readonly causes: number;
  readonly records: number;
  readonly error_code: string;
  readonly column_name: string | null;
  readonly shape: string;
}

function toCause(row: CauseRow): CountedCause {
  const reject = { code: row.error_code as RejectCode, column: row.column_name };
  return {
    cause: row.cause,
    count: row.count,
    firstRow: row.first_row,
    code: reject.code,
    column: causeColumn(reject),
    shape: row.shape,
  };
}

interface RejectRow {
  readonly row_number: number;
  readonly line_number: number;
  readonly byte_offset: number;
  readonly column_name: string | null;
  readonly error_code: string;
  readonly message: string;
  readonly raw: Buffer;
}

interface MeasuredReject extends RejectRow {
  readonly is_cut: boolean;
  /** Candidates, of which these are the first. */
  readonly found: number;
}

function toReject(row: RejectRow): Reject {
  return {
    row: row.row_number,
    line: row.line_number,
    byteOffset: row.byte_offset,
    column: row.column_name,
    code: row.error_code as RejectCode,
    message: row.message,
    raw: row.raw,
  };
}
