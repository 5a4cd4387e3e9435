import { InputError, inputError } from '../domain/errors.ts';
import { MAX_BULK_JOBS } from '../domain/limits.ts';
import type { ExportContext } from '../export/context.ts';
import type { LoadContext } from '../load/context.ts';
import { retryLoad } from '../load/retry-load.ts';
import { findActionable, type JobAction, type JobFilter } from '../postgres/stores/background-jobs.ts';
import { cancelFoundJob, requireJob } from './jobs.ts';

export interface BulkRequest {
  readonly action: JobAction;
  readonly filter: JobFilter;
  /** The number of jobs that the caller expects; null asks for the number and does nothing. */
  readonly expectedCount: number | null;
  readonly withExports: boolean;
}

export interface BulkOutcome {
  readonly count: number;
  readonly done: number;
  readonly refused: readonly { readonly jobId: string; readonly code: string; readonly message: string }[];
}

/**
 * Cancels or retries the jobs that match, oldest first, each in a transaction of its own, as if asked one by one. Nothing is done
 * unless the number is the expected one.
 * @throws InputError `count_changed`, `too_many_records`.
 */
export async function actOnJobs(
  context: LoadContext & ExportContext,
  environmentId: number,
  { action, filter, expectedCount, withExports }: BulkRequest,
): Promise<BulkOutcome> {
  const options = { limit: MAX_BULK_JOBS + 1, withExports };
  const ids = await findActionable(context.db, environmentId, action, filter, options);
  if (ids.length > MAX_BULK_JOBS) {
    const message = `More than ${MAX_BULK_JOBS} jobs match, and that is the most at once; choose fewer, for example by time of acceptance`;
    throw inputError('too_many_records', message, 'filter');
  }
  const count = ids.length;
  if (expectedCount === null) return { count, done: 0, refused: [] };
  if (expectedCount !== count) {
    const details = `count: ${count}, expected_count: ${expectedCount}`;
    throw inputError('count_changed', 'The filter matches another number of jobs now; look again', details);
  }
  const refused: BulkOutcome['refused'][number][] = [];
  for (const jobId of ids) {
    try {
      await act(context, environmentId, action, jobId);
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      refused.push({ jobId, code: error.problems[0].code, message: error.message });
    }
  }
  return { count, done: count - refused.length, refused };
}

async function act(
  context: LoadContext & ExportContext,
  environmentId: number,
  action: JobAction,
  jobId: string,
): Promise<void> {
  if (action === 'retry') return retryLoad(context, environmentId, jobId);
  await cancelFoundJob(context, environmentId, await requireJob(context, environmentId, jobId));
}
