import { inputError } from '../base/errors.ts';
import type { Environment } from '../domain/caller.ts';
import { exportUrl, rateOf, renderJobListItem } from '../http/render.ts';
import type { ExportContext } from './context.ts';
import type { ExportLinks, FileLink } from './file-links.ts';
import { type Export, readExports } from './store.ts';

/** @throws InputError `not_found`, also for another environment's export or another kind of job. */
export async function requireExport(
  { db }: Pick<ExportContext, 'db'>,
  environmentId: number,
  jobId: string,
): Promise<Export> {
  const [found] = await readExports(db, environmentId, [jobId]);
  if (found === undefined) throw inputError('not_found', 'there is no such job', `job_id: ${jobId}`);
  return found;
}

// Exports as callers see them. Times are ISO 8601, UTC, with milliseconds.

export function renderCreated(found: Export, { name, appToken }: Environment, baseUrl: string) {
  return {
    environment_app_token: appToken,
    environment_name: name,
    job_id: found.jobId,
    links: exportUrl(baseUrl, found.jobId),
    start_time: found.acceptedAt.toISOString(),
    ...(found.warnings.length > 0 && { warnings: [...found.warnings] }),
  };
}

export function renderExportItem(found: Export, { appToken }: Environment, baseUrl: string) {
  return {
    app_token: appToken,
    job_id: found.jobId,
    type: found.type,
    status: found.status,
    progress: found.progress,
    start_time: found.acceptedAt.toISOString(),
    end_time: found.endedAt?.toISOString() ?? null,
    rows: found.rowsWritten,
    bytes: found.bytesWritten,
    links: exportUrl(baseUrl, found.jobId),
    cursor: found.cursor,
  };
}

export function renderExport(
  found: Export,
  environment: Environment,
  { files, manifest }: ExportLinks,
  baseUrl: string,
) {
  return {
    ...renderExportItem(found, environment, baseUrl),
    snapshot_time: found.snapshotAt?.toISOString() ?? null,
    presigned_urls: files.map((file) => ({ ...renderLink(file), rows: file.rows })),
    manifest: manifest && renderLink(manifest),
    files_expired: found.filesExpired,
    warnings: [...found.warnings],
    failure: renderFailure(found),
  };
}

function renderLink({ filename, url, bytes, sha256 }: FileLink) {
  return { filename, url, bytes, sha256 };
}

/** Has the shape of `/v1/background_jobs/{job_id}`. `links` leads to the files. */
export function renderExportDetail(found: Export, baseUrl: string, now = new Date()) {
  return {
    ...renderJobListItem(found, baseUrl, now),
    completed_rows: found.rowsWritten,
    progress: found.progress,
    cursor: found.cursor,
    warnings: [...found.warnings],
    failure: renderFailure(found),
    last_error: found.lastError,
    attempts: found.attempts,
    rows_per_second: rateOf(found.rowsWritten, found, now),
  };
}

function renderFailure({ failure }: Export) {
  return failure && { error_code: failure.code, message: failure.message };
}
