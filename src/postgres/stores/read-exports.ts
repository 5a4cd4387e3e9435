import { type Selectable, sql } from 'kysely';
import type {
  Export,
  ExportFile,
  ExportRequest,
  ExportStatus,
  ExportWarning,
  FileDataset,
} from '../../domain/export.ts';
import type { ExportFormat } from '../../domain/export-format.ts';
import type { FileRef } from '../../files/file-store.ts';
import type { Database } from '../database.ts';
import type { ExportFiles } from '../schema.ts';
import { pageJobIds } from './background-jobs.ts';

/** The environment's exports of these ids, in no order. */
export async function readExports(
  db: Database,
  environmentId: number,
  jobIds: readonly string[],
): Promise<Export[]> {
  if (jobIds.length === 0) return [];
  const rows = await db
    .selectFrom('exports')
    .select([...exportColumns, lastError])
    .where('environment_id', '=', environmentId)
    .where('job_id', 'in', jobIds)
    .execute();
  const files = await readFiles(
    db,
    rows.filter((row) => row.files_expired_at === null).map((row) => row.export_id),
  );
  return rows.map((row) => toExport(row, files.get(row.export_id) ?? []));
}

async function readFiles(
  db: Database,
  exportIds: readonly number[],
): Promise<ReadonlyMap<number, readonly ExportFile[]>> {
  const files = new Map<number, ExportFile[]>();
  if (exportIds.length === 0) return files;
  const rows = await db
    .selectFrom('export_files')
    .selectAll()
    .where('export_id', 'in', exportIds)
    .orderBy('export_id')
    // The data first, then what is said of it.
    .orderBy((eb) => eb('dataset', '=', 'manifest'))
    .orderBy('filename')
    .execute();
  for (const row of rows) {
    const known = files.get(row.export_id) ?? [];
    known.push(toFile(row));
    files.set(row.export_id, known);
  }
  return files;
}

function toFile(row: Selectable<ExportFiles>): ExportFile & { readonly ref: FileRef } {
  return {
    filename: row.filename,
    dataset: row.dataset as FileDataset | 'manifest',
    ref: row.file_ref as FileRef,
    rows: row.row_count,
    bytes: row.byte_count,
    sha256: row.sha256.toString('hex'),
  };
}

/** What an export is to hold: lists of up to a megabyte, which nobody looks at by the page. */
export async function readExportRequest(db: Database, exportId: number): Promise<ExportRequest> {
  const { request } = await db
    .selectFrom('exports')
    .select('request')
    .where('export_id', '=', exportId)
    .executeTakeFirstOrThrow();
  return request as unknown as ExportRequest;
}

/** A file of an export, whoever's it is: a link to it is what allows to read it. */
export interface FoundFile {
  readonly environmentId: number;
  readonly filesExpired: boolean;
  /** Null if the export has no such file. */
  readonly file: (ExportFile & { readonly ref: FileRef }) | null;
}

/** Null if there is no such export. */
export async function findExportFile(
  db: Database,
  jobId: string,
  filename: string,
): Promise<FoundFile | null> {
  const found = await db
    .selectFrom('exports')
    .select(['export_id', 'environment_id', 'files_expired_at'])
    .where('job_id', '=', jobId)
    .executeTakeFirst();
  if (found === undefined) return null;
  const row = await db
    .selectFrom('export_files')
    .selectAll()
    .where('export_id', '=', found.export_id)
    .where('filename', '=', filename)
    .executeTakeFirst();
  return {
    environmentId: found.environment_id,
    filesExpired: found.files_expired_at !== null,
    file: row === undefined ? null : toFile(row),
  };
}

/** What the last try of one that has not ended ran into. */
const lastError = sql<string | null>`(
  select t.last_error from tasks t where t.kind = 'export' and t.subject_id = exports.export_id
)`.as('last_error');

const exportColumns = [
  'export_id',
  'job_id',
  'environment_id',
  'status',
  'format',
  'emails',
  'warnings',
  'requested_at',
  'started_at',
  'ended_at',
  'attempts',
  'rows_expected',
  'rows_written',
  'bytes_written',
  'snapshot_at',
  'failure_code',
  'failure_message',
  'files_expired_at',
] as const;

interface ExportRow {
  export_id: number;
  job_id: string;
  environment_id: number;
  status: string;
  format: string;
  emails: string[];
  warnings: unknown;
  requested_at: Date;
  started_at: Date | null;
  ended_at: Date | null;
  attempts: number;
  rows_expected: number | null;
  rows_written: number;
  bytes_written: number;
  snapshot_at: Date | null;
  failure_code: string | null;
  failure_message: string | null;
  last_error: string | null;
  files_expired_at: Date | null;
}

function toExport(row: ExportRow, files: readonly ExportFile[]): Export {
  const status = row.status as ExportStatus;
  return {
    exportId: row.export_id,
    jobId: row.job_id,
    environmentId: row.environment_id,
    status,
    format: row.format as ExportFormat,
    emails: row.emails,
    warnings: row.warnings as readonly ExportWarning[],
    requestedAt: row.requested_at,
    startedAt: row.started_at,
    endedAt: row.ended_at,
    attempts: row.attempts,
    progress: progressOf(status, row.rows_written, row.rows_expected),
    rowsWritten: row.rows_written,
    bytesWritten: row.bytes_written,
    snapshotAt: row.snapshot_at,
    failure:
      row.failure_code === null
        ? null
        : { code: row.failure_code, message: row.failure_message ?? row.failure_code },
    lastError: row.last_error,
    files: status === 'completed' ? files : [],
    filesExpired: row.files_expired_at !== null,
  };
}

/** What was expected is the planner's guess: short of completion it is never all. */
function progressOf(status: ExportStatus, written: number, expected: number | null): number {
  if (status === 'completed') return 1;
  if (expected === null || expected <= 0) return 0;
  return Math.floor(Math.min(written / expected, 0.99) * 10_000) / 10_000;
}

export interface ExportPage {
  readonly exports: readonly Export[];
  /** Exports that match, on all pages. */
  readonly total: number;
  /** Job id to continue after, or null on the last page. */
  readonly next: string | null;
}

/** Newest first. `after` is the job id at which the page before ended. */
export async function pageExports(
  db: Database,
  environmentId: number,
  filter: { readonly statuses?: readonly string[] | undefined },
  page: { readonly limit: number; readonly after: string | null },
): Promise<ExportPage> {
  const { ids, total, next } = await pageJobIds(db, environmentId, { types: ['export'], ...filter }, page);
  const exports = (await readExports(db, environmentId, ids)).sort(newestFirst);
  return { exports, total, next };
}

function newestFirst(a: Export, b: Export): number {
  return a.jobId < b.jobId ? 1 : -1;
}

/** How an export stands, and whom it names. */
export function readExportEnd(db: Database, environmentId: number, jobId: string) {
  return db
    .selectFrom('exports')
    .select(['status', 'emails'])
    .where('environment_id', '=', environmentId)
    .where('job_id', '=', jobId)
    .executeTakeFirstOrThrow();
}
