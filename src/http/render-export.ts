import type { Environment } from '../access/environments.ts';
import {
  renderExportDetail as describeDetail,
  renderExportListItem as describeListItem,
  renderExportRecord as describeRecord,
  exportUrl,
} from '../background-jobs/render-export-job.ts';
import type { Export } from '../domain/export.ts';
import type { FileLink } from '../export/file-links.ts';
import type { CreatedExport } from './schemas/created-export.ts';
import type { ExportItem, ExportJob } from './schemas/export-job.ts';
import type { ExportJobDetail } from './schemas/export-job-detail.ts';
import type { JobListItem, JobRecord } from './schemas/job-record.ts';

/** The answer to a request for an export. */
export function renderCreated(
  found: Export,
  { name, appToken }: Environment,
  baseUrl: string,
): CreatedExport {
  return {
    environment_app_token: appToken,
    environment_name: name,
    job_id: found.jobId,
    links: exportUrl(baseUrl, found.jobId),
    start_time: found.requestedAt.toISOString(),
  };
}

export function renderExportItem(found: Export, { appToken }: Environment, baseUrl: string): ExportItem {
  return {
    app_token: appToken,
    job_id: found.jobId,
    type: 'export',
    status: found.status,
    progress: found.progress,
    start_time: found.requestedAt.toISOString(),
    end_time: found.endedAt?.toISOString() ?? null,
    rows: found.rowsWritten,
    bytes: found.bytesWritten,
    links: exportUrl(baseUrl, found.jobId),
  };
}

export function renderExport(
  found: Export,
  environment: Environment,
  links: readonly FileLink[],
  baseUrl: string,
): ExportJob {
  return {
    ...renderExportItem(found, environment, baseUrl),
    snapshot_time: found.snapshotAt?.toISOString() ?? null,
    presigned_urls: links.map(({ filename, url, bytes, rows, sha256 }) => ({
      filename,
      url,
      bytes,
      rows,
      sha256,
    })),
    files_expired: found.filesExpired,
    failure: found.failure && { error_code: found.failure.code, message: found.failure.message },
  };
}

/* What webhooks tell too, held here to what the schemas promise. */

/** As the list of all background jobs has it. */
export const renderExportRecord: (found: Export, baseUrl: string) => JobRecord = describeRecord;

export const renderExportListItem: (found: Export, baseUrl: string, now?: Date) => JobListItem =
  describeListItem;

/** As `/v1/background_jobs/{job_id}` has it. The files are at `links`, for keys that may export. */
export const renderExportDetail: (found: Export, baseUrl: string, now?: Date) => ExportJobDetail =
  describeDetail;
