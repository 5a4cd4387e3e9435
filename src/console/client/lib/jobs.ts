/* Jobs as the screens show them: names, states, and the poll of one job. */

import type { JobListItem } from '../../../api/job.ts';
import type { JobDetail as LoadDetail } from '../../../api/load.ts';
import { loadStatuses } from '../../../domain/load.ts';
import { screenHref } from './address.ts';
import { ApiError, api } from './api.ts';
import { type Loaded, useData } from './use-data.ts';

export const jobTypeNames: Readonly<Record<string, string>> = {
  import: 'File',
  bulk_identify_users: 'Users, in bulk',
  bulk_identify_companies: 'Companies, in bulk',
  export: 'Export',
  delete_users: 'Deletion of users',
  delete_companies: 'Deletion of companies',
};

export const jobStatuses = loadStatuses;

interface WithStatus {
  readonly status: string;
}

export function isUnfinished({ status }: WithStatus): boolean {
  return status === 'queued' || status === 'processing';
}

export function isEnded(job: WithStatus): boolean {
  return !isUnfinished(job);
}

export function isLoad({ type }: { readonly type: string }): boolean {
  return type === 'import' || type.startsWith('bulk_identify_');
}

export function jobPath(jobId: string): string {
  return `/v1/background_jobs/${encodeURIComponent(jobId)}`;
}

export function jobHref(jobId: string): string {
  return screenHref(`/jobs/${jobId}`);
}

export function refusedHref(jobId: string): string {
  return screenHref(`/jobs/${jobId}/refused`);
}

/** Returns how long the current work has taken, without waiting for a turn or for approval of a plan; `null` while the job waits. */
export function workMs(job: Pick<JobListItem, 'processing_since' | 'end_time'>): number | null {
  if (job.processing_since === null) return null;
  const end = job.end_time === null ? Date.now() : Date.parse(job.end_time);
  return Math.max(0, end - Date.parse(job.processing_since));
}

const pollMs = 700;

/** Loads a load again and again: also after it has ended, since records may be mended then. */
export function useLoad(jobId: string): Loaded<LoadDetail> {
  const path = jobPath(jobId);
  return useData(jobId === '' ? null : path, (signal) => api<LoadDetail>(path, { signal }), {
    everyMs: pollMs,
  });
}

/** Returns a value that changes whenever the load's refused records, or their reasons, may have changed. */
export function refusedState({ counts, amendments }: LoadDetail): string {
  return `${counts.rejected} ${amendments.filter(isEnded).map(({ job_id }) => job_id)}`;
}

/** Cancels a load; one that has ended meanwhile is left alone. */
export async function cancelLoad(jobId: string): Promise<void> {
  try {
    await api(`${jobPath(jobId)}/cancel`, { method: 'POST' });
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 409) throw error;
  }
}
