import { inputError } from '../base/errors.ts';
import type { Environment } from '../domain/caller.ts';
import { exportUrl, rateOf, renderJobListItem } from '../http/render.ts';
import type { JobHistory } from '../tasks/job-store.ts';
import type { ExportContext } from './context.ts';
import type { ExportLinks, FileLink } from './file-links.ts';
import { renderExportRun } from './manifest.ts';
import { type Export, readExports } from './store.ts';

/**
 * Finds an export.
 * @throws InputError `not_found`, also for another environment and other kinds of jobs
 */
export async function requireExport(
  { db }: Pick<ExportContext, 'db'>,
  environmentId: number,
  jobId: string,
): Promise<Export> {
  const [job] = await readExports(db, environmentId, [jobId]);
  if (job === undefined) throw inputError('not_found', 'There is no such job', `job_id: ${jobId}`);
  return job;
}

// Times are ISO 8601 in UTC with milliseconds.

export function renderCreated(job: Export, { name, appToken }: Environment, baseUrl: string) {
  return {
    environment_app_token: appToken,
    environment_name: name,
    job_id: job.jobId,
    links: exportUrl(baseUrl, job.jobId),
    start_time: job.acceptedAt.toISOString(),
    ...(job.warnings.length > 0 && { warnings: [...job.warnings] }),
  };
}

export function renderExportItem(job: Export, { appToken }: Environment, baseUrl: string) {
  return {
    app_token: appToken,
    job_id: job.jobId,
    type: job.type,
    status: job.status,
    progress: job.progress,
    start_time: job.acceptedAt.toISOString(),
    end_time: job.endedAt?.toISOString() ?? null,
    rows: job.rowsWritten,
    bytes: job.bytesWritten,
    links: exportUrl(baseUrl, job.jobId),
    cursor: job.cursor,
  };
}

export function renderExport(
  job: Export,
  environment: Environment,
  { files, manifest }: ExportLinks,
  baseUrl: string,
) {
  return {
    ...renderExportItem(job, environment, baseUrl),
    snapshot_time: job.snapshotAt?.toISOString() ?? null,
    presigned_urls: files.map((file) => ({ ...renderLink(file), rows: file.rows })),
    manifest: manifest && renderLink(manifest),
    files_expired: job.filesExpired,
    warnings: [...job.warnings],
    failure: renderFailure(job),
  };
}

function renderLink({ filename, url, bytes, sha256 }: FileLink) {
  return { filename, url, bytes, sha256 };
}

/** The record for `/v1/background_jobs/{job_id}`. `links` is the URL of the export. */
export function renderExportDetail(job: Export, history: JobHistory, baseUrl: string, now = new Date()) {
  return {
    ...renderExportRun(job, history),
    ...renderJobListItem(job, baseUrl, now),
    completed_rows: job.rowsWritten,
    progress: job.progress,
    warnings: [...job.warnings],
    emails: [...job.emails],
    last_error: job.lastError,
    attempts: job.attempts,
    rows_per_second: rateOf(job.rowsWritten, job, now),
  };
}

function renderFailure({ failure }: Export) {
  return failure && { error_code: failure.code, message: failure.message };
}
