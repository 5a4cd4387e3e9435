import { type InferResult, sql } from 'kysely';
import type { Export, ExportFile, ExportRequest, ExportStatus } from '../../domain/export.ts';
import type { FileRef } from '../../files/file-store.ts';
import { camel, hex, toFailure } from '../columns.ts';
import type { Database } from '../database.ts';
import { pageJobIds } from './background-jobs.ts';

/** Reads the environment's exports of these ids, in no order. */
export async function readExports(
  db: Database,
  environmentId: number,
  jobIds: readonly string[],
): Promise<Export[]> {
  if (jobIds.length === 0) return [];
  const rows = await selectExports(db, environmentId, jobIds).execute();
  const kept = rows.filter((row) => row.filesExpiredAt === null).map((row) => row.exportId);
  const files = await readFiles(db, kept);
  return rows.map((row) => toExport(row, files.get(row.exportId) ?? []));
}

async function readFiles(
  db: Database,
  exportIds: readonly number[],
): Promise<ReadonlyMap<number, readonly ExportFile[]>> {
  if (exportIds.length === 0) return new Map();
  const rows = await selectFiles(db)
    .select('export_id as exportId')
    .where('export_id', 'in', exportIds)
    .orderBy('export_id')
    // The manifest comes after the data.
    .orderBy((eb) => eb('dataset', '=', 'manifest'))
    .orderBy('filename')
    .execute();
  const files = new Map<number, ExportFile[]>();
  for (const { exportId, ...file } of rows) files.set(exportId, [...(files.get(exportId) ?? []), file]);
  return files;
}

function selectFiles(db: Database) {
  return db
    .selectFrom('export_files')
    .select(['filename', 'dataset', 'file_ref as ref', 'row_count as rows', 'byte_count as bytes'])
    .select(hex('sha256', 'sha256'));
}

/** Reads what an export was asked for: up to a megabyte of lists, which pages of exports leave out. */
export async function readExportRequest(db: Database, exportId: number): Promise<ExportRequest> {
  const { request } = await db
    .selectFrom('exports')
    .select('request')
    .where('export_id', '=', exportId)
    .executeTakeFirstOrThrow();
  return request;
}

/** A file of any environment's export: the link to it is what allows reading it. */
export interface FoundFile {
  readonly environmentId: number;
  readonly filesExpired: boolean;
  /** `null` if the export has no such file. */
  readonly file: (ExportFile & { readonly ref: FileRef }) | null;
}

/** Returns `null` if there is no such export. */
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
  const file = await selectFiles(db)
    .where('export_id', '=', found.export_id)
    .where('filename', '=', filename)
    .executeTakeFirst();
  return {
    environmentId: found.environment_id,
    filesExpired: found.files_expired_at !== null,
    file: file ?? null,
  };
}

/** The last error of an export that has not ended. */
const lastError = sql<string | null>`(
  select t.last_error from tasks t where t.kind = 'export' and t.subject_id = exports.export_id
)`.as('lastError');

function selectExports(db: Database, environmentId: number, jobIds: readonly string[]) {
  return db
    .selectFrom('exports')
    .select(camel('export_id', 'job_id', 'environment_id', 'status', 'format', 'emails', 'warnings'))
    .select(camel('requested_at', 'started_at', 'ended_at', 'attempts', 'snapshot_at', 'files_expired_at'))
    .select(camel('rows_expected', 'rows_written', 'bytes_written', 'failure_code', 'failure_message'))
    .select(lastError)
    .where('environment_id', '=', environmentId)
    .where('job_id', 'in', jobIds);
}

type ExportRow = InferResult<ReturnType<typeof selectExports>>[number];

function toExport(row: ExportRow, files: readonly ExportFile[]): Export {
  const { rowsExpected, failureCode, failureMessage, filesExpiredAt, ...shown } = row;
  return {
    ...shown,
    progress: progressOf(row.status, row.rowsWritten, rowsExpected),
    failure: toFailure(failureCode, failureMessage),
    files: row.status === 'completed' ? files : [],
    filesExpired: filesExpiredAt !== null,
  };
}

/** The expected number is the planner's estimate: an export that runs never shows all of it. */
function progressOf(status: ExportStatus, written: number, expected: number | null): number {
  if (status === 'completed') return 1;
  if (expected === null || expected <= 0) return 0;
  return Math.floor(Math.min(written / expected, 0.99) * 10_000) / 10_000;
}

export interface ExportPage {
  readonly exports: readonly Export[];
  /** Exports that match, on all pages. */
  readonly total: number;
  /** The job id to continue after; `null` on the last page. */
  readonly next: string | null;
}

/** Lists exports, newest first. `after` is the last job id of the page before. */
export async function pageExports(
  db: Database,
  environmentId: number,
  filter: { readonly statuses?: readonly string[] | undefined },
  page: { readonly limit: number; readonly after: string | null },
): Promise<ExportPage> {
  const { ids, total, next } = await pageJobIds(db, environmentId, { types: ['export'], ...filter }, page);
  const exports = await readExports(db, environmentId, ids);
  return { exports: exports.sort((a, b) => (a.jobId < b.jobId ? 1 : -1)), total, next };
}

export function readExportEnd(db: Database, environmentId: number, jobId: string) {
  return db
    .selectFrom('exports')
    .select(['status', 'emails'])
    .where('environment_id', '=', environmentId)
    .where('job_id', '=', jobId)
    .executeTakeFirstOrThrow();
}
