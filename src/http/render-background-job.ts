import type { Job } from '../background-jobs/find-jobs.ts';
import { countRejects } from '../load/inspect-load.ts';
import type { Database } from '../postgres/database.ts';
import { renderDeletion, renderDeletionDetail, renderDeletionListItem } from './render-deletion.ts';
import { renderExportDetail, renderExportListItem, renderExportRecord } from './render-export.ts';
import { renderJob, renderJobDetail, renderListItem } from './render-job.ts';
import type { DeletionJobDetail } from './schemas/deletion-job-detail.ts';
import type { ExportJobDetail } from './schemas/export-job-detail.ts';
import type { JobDetail } from './schemas/job-detail.ts';
import type { JobListItem, JobRecord } from './schemas/job-record.ts';

/** A job of any kind, as it is answered when it was acted on. */
export function renderRecord(job: Job, baseUrl: string): JobRecord {
  if (job.kind === 'load') return renderJob(job.load, baseUrl);
  return job.kind === 'export'
    ? renderExportRecord(job.export, baseUrl)
    : renderDeletion(job.deletion, baseUrl);
}

/** As the list of all jobs has it. */
export function renderItem(job: Job, baseUrl: string, now = new Date()): JobListItem {
  if (job.kind === 'load') return renderListItem(job.load, baseUrl, now);
  return job.kind === 'export'
    ? renderExportListItem(job.export, baseUrl, now)
    : renderDeletionListItem(job.deletion, baseUrl, now);
}

/** Everything there is to know of it. */
export async function renderDetail(
  context: { readonly db: Database },
  environmentId: number,
  job: Job,
  baseUrl: string,
): Promise<JobDetail | ExportJobDetail | DeletionJobDetail> {
  if (job.kind === 'export') return renderExportDetail(job.export, baseUrl);
  if (job.kind === 'deletion') return renderDeletionDetail(job.deletion, baseUrl);
  const { load, jobId } = job;
  const byCode = load.tally.rejected === 0 ? {} : await countRejects(context, environmentId, jobId);
  return renderJobDetail(load, byCode, baseUrl);
}
