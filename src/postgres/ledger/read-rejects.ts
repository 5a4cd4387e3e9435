import type { StoredFormat } from '../../domain/load.ts';
import type { Reject, RejectCode } from '../../domain/reject.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import type { Database } from '../database.ts';

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
  const row = await selectRejects(db, loadId).where('error_code', '=', code).limit(1).executeTakeFirst();
  return row === undefined ? null : toReject(row);
}

/** At most `limit` rejects of rows after `afterRow`, in file order. */
export async function readRejectsPage(
  db: Database,
  loadId: number,
  afterRow: number,
  limit: number,
): Promise<Reject[]> {
  const rows = await selectRejects(db, loadId).where('row_number', '>', afterRow).limit(limit).execute();
  return rows.map(toReject);
}

function selectRejects(db: Database, loadId: number) {
  return db
    .selectFrom('load_rejects')
    .select(['row_number', 'line_number', 'byte_offset', 'column_name', 'error_code', 'message', 'raw'])
    .where('load_id', '=', loadId)
    .orderBy('row_number');
}

type RejectRow = Awaited<ReturnType<ReturnType<typeof selectRejects>['executeTakeFirstOrThrow']>>;

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
