import { renderDeletion, renderDeletionDetail, renderDeletionListItem } from '../deletion/render-deletion.ts';
import { renderExportDetail, renderExportListItem, renderExportRecord } from '../export/render-export.ts';
import { countRejects } from '../load/inspect-load.ts';
import { renderLoad, renderLoadDetail, renderLoadListItem } from '../load/render-load.ts';
import type { Database } from '../postgres/database.ts';
import type { Job } from './find-jobs.ts';

/** A job of any kind, as it is answered when it was acted on. */
export function renderJob(job: Job, baseUrl: string) {
  switch (job.kind) {
    case 'load':
      return renderLoad(job.load, baseUrl);
    case 'export':
      return renderExportRecord(job.export, baseUrl);
    case 'deletion':
      return renderDeletion(job.deletion, baseUrl);
  }
}

/** As the list of all jobs has it. */
export function renderJobListItem(job: Job, baseUrl: string, now = new Date()) {
  switch (job.kind) {
    case 'load':
      return renderLoadListItem(job.load, baseUrl, now);
    case 'export':
      return renderExportListItem(job.export, baseUrl, now);
    case 'deletion':
      return renderDeletionListItem(job.deletion, baseUrl, now);
  }
}

/** Everything there is to know of it. */
export async function renderJobDetail(
  context: { readonly db: Database },
  environmentId: number,
  job: Job,
  baseUrl: string,
) {
  switch (job.kind) {
    case 'load': {
      const { load, jobId } = job;
      const byCode = load.tally.rejected === 0 ? {} : await countRejects(context, environmentId, jobId);
      return renderLoadDetail(load, byCode, baseUrl);
    }
    case 'export':
      return renderExportDetail(job.export, baseUrl);
    case 'deletion':
      return renderDeletionDetail(job.deletion, baseUrl);
  }
}
