import type { Job } from '../../background-jobs/find-jobs.ts';
import type { System } from '../../context.ts';
import { followDeletion } from '../delete/follow-deletion.ts';
import { createExportProgress } from '../export/export-progress.ts';
import { followExport } from '../export/follow-export.ts';
import { followLoad } from '../import/follow-load.ts';
import { createProgress } from '../import/progress.ts';
import type { Terminal } from '../terminal.ts';

export interface FollowJobOptions {
  readonly terminal: Terminal;
  readonly environmentId: number;
  readonly signal: AbortSignal;
  /** No progress is shown. */
  readonly quiet: boolean;
}

/** Looks at a job of any kind until it has ended or the signal aborts; returns how it was seen last. */
export async function followJob(system: System, job: Job, options: FollowJobOptions): Promise<Job> {
  const { terminal, environmentId, signal, quiet } = options;
  const { jobId } = job;
  if (job.kind === 'deletion') {
    return { ...job, deletion: await followDeletion(system, environmentId, jobId, signal) };
  }
  if (job.kind === 'export') {
    const progress = createExportProgress(terminal, quiet);
    const onChange = progress.show;
    const seen = await followExport(system, environmentId, jobId, { signal, onChange }).finally(progress.end);
    return { ...job, export: seen };
  }
  const progress = createProgress(terminal, jobId, quiet);
  const onChange = progress.loading;
  const load = await followLoad(system, { environmentId, jobId, signal, onChange }).finally(progress.end);
  return { ...job, load };
}
