/* Jobs as the screens show them: records, names, states, and how often they are asked for. */

import { useLocation } from 'preact-iso';
import type { Static } from 'typebox';
import type { failure, JobListItem } from '../../../http/job.ts';
import { screenHref } from './address.ts';
import { post } from './api.ts';
import { pollMs, restMs } from './data.ts';
import { visibleText } from './format.ts';

type Counts = Readonly<Record<string, number>>;

/** The detail of a job of any kind. A noun declares in its `console` folder what only its jobs have. */
export interface JobDetail extends Omit<JobListItem, 'counts' | 'origin'> {
  readonly completed_rows: number;
  readonly progress: number;
  readonly counts?: Counts;
  readonly failure: Static<typeof failure> | null;
  readonly last_error: string | null;
  readonly attempts: number;
}

/** Returns who or what started a job. */
export function originText(origin: JobListItem['origin']): string {
  if (origin === null) return 'unknown';
  const kind = origin.kind.replace('_', ' ').replace(/^api\b|^./, (text) => text.toUpperCase());
  return `${kind} ${visibleText(origin.name ?? '')}`;
}

export function isUnfinished({ status }: { readonly status: string }): boolean {
  return status === 'queued' || status === 'processing';
}

export function isLoad({ type }: { readonly type: string }): boolean {
  return type !== 'export' && !type.startsWith('delete_');
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

/** Returns a function that starts a job by a POST, and leads to its page. */
export function useStart(): (path: string, body?: object) => Promise<void> {
  const { route } = useLocation();
  return async (path, body) => {
    const { job_id } = await post<{ readonly job_id: string }>(path, body);
    route(jobHref(job_id));
  };
}

/** Returns how long the current work has taken, without waiting for a turn or for approval of a plan; `null` while the job waits. */
export function workMs(job: Pick<JobListItem, 'processing_since' | 'end_time'>): number | null {
  if (job.processing_since === null) return null;
  const end = job.end_time === null ? Date.now() : Date.parse(job.end_time);
  return Math.max(0, end - Date.parse(job.processing_since));
}

/** A job that has ended may still be undone. */
export function pauseOf(job: { readonly status: string } | undefined): number {
  return job !== undefined && isUnfinished(job) ? pollMs : restMs;
}
