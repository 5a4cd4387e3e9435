import { renderLoad, renderLoadDetail, renderLoadListItem } from '../background-jobs/render-load.ts';
import type { Load } from '../domain/load.ts';
import type { JobDetail } from './schemas/job-detail.ts';
import type { ImportRecord, JobListItem, JobRecord } from './schemas/job-record.ts';

/* What webhooks tell too, held here to what the schemas promise. */

export const renderJob: (load: Load, baseUrl: string) => JobRecord = renderLoad;

export const renderListItem: (load: Load, baseUrl: string, now?: Date) => JobListItem = renderLoadListItem;

/** Everything there is to know of a job. `rejectsByCode` comes from `countRejects`. */
export const renderJobDetail: (
  load: Load,
  rejectsByCode: Readonly<Record<string, number>>,
  baseUrl: string,
  now?: Date,
) => JobDetail = renderLoadDetail;

/** `POST /v1/imports` shows the numbers as strings. */
export function renderImport(load: Load, baseUrl: string): ImportRecord {
  const job = renderJob(load, baseUrl);
  return { ...job, file_size: String(job.file_size), total_rows: String(job.total_rows) };
}
