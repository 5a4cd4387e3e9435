import { useLocation } from 'preact-iso';
import { type LoadType, loadTypes } from '../../../domain/load.ts';
import type { JobListItem } from '../../../http/job.ts';
import { screenHref } from './address.ts';
import { post } from './api.ts';
import { pollMs, restMs } from './data.ts';
import { visibleText } from './format.ts';

/** The documents of all kinds of jobs. Each kind declares its document in its `console` folder. */
// biome-ignore lint/suspicious/noEmptyInterface: each kind adds a member.
export interface JobDocuments {}

export type JobDetail = JobDocuments[keyof JobDocuments];

export type LoadJob = Extract<JobDetail, { readonly type: LoadType }>;

export function originText(origin: JobListItem['origin']): string {
  if (origin === null) return 'unknown';
  const kind = origin.kind.replace('_', ' ').replace(/^api\b|^./, (text) => text.toUpperCase());
  return `${kind} ${visibleText(origin.name ?? '')}`;
}

export function isUnfinished({ status }: { readonly status: string }): boolean {
  return status === 'queued' || status === 'processing';
}

export function isLoad(job: JobDetail): job is LoadJob {
  return loadTypes.some((type) => type === job.type);
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

export function useStart(): (path: string, body?: object) => Promise<void> {
  const { route } = useLocation();
  return async (path, body) => {
    const { job_id } = await post<{ readonly job_id: string }>(path, body);
    route(jobHref(job_id));
  };
}

/**
 * Duration of the current work, without the time spent waiting. `null` while the job is waiting.
 */
export function workMs(job: Pick<JobListItem, 'processing_since' | 'end_time'>): number | null {
  if (job.processing_since === null) return null;
  const end = job.end_time === null ? Date.now() : Date.parse(job.end_time);
  return Math.max(0, end - Date.parse(job.processing_since));
}

/** Polling continues after a job has ended, because it may still change. */
export function pauseOf(job: { readonly status: string } | undefined): number {
  return job !== undefined && isUnfinished(job) ? pollMs : restMs;
}
