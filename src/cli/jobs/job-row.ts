import type { Job } from '../../background-jobs/find-jobs.ts';
import { renderJob } from '../../background-jobs/render-job.ts';
import { formatCount } from '../format-numbers.ts';
import { printable } from '../table.ts';

export const jobColumns = [
  { title: 'job' },
  { title: 'type' },
  { title: 'status' },
  { title: 'file' },
  { title: 'accepted' },
  { title: 'rows', align: 'right' },
  { title: 'rejected', align: 'right' },
] as const;

/** A line of the list. Rows of an export are those written, of a deletion the ids. */
export function jobRow(job: Job): string[] {
  const { job_id, type, status, filename, start_time, total_rows } = renderJob(job, '');
  const accepted = `${start_time.slice(0, 19).replace('T', ' ')}Z`;
  const rejected = job.kind === 'load' ? formatCount(job.load.tally.rejected) : '';
  return [job_id, type, status, printable(filename, 36), accepted, formatCount(total_rows), rejected];
}
