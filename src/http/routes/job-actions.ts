import { bulkResult, jobRecord } from '../../api/job.ts';
import { object } from '../../api/schema.ts';
import { actOnJobs } from '../../background-jobs/bulk.ts';
import { cancelFoundJob, renderJob, requireJob, requireRetryable } from '../../background-jobs/jobs.ts';
import { MAX_BULK_JOBS } from '../../domain/limits.ts';
import { renderLoad } from '../../load/render-load.ts';
import { retryLoad } from '../../load/retry-load.ts';
import type { JobAction } from '../../postgres/stores/background-jobs.ts';
import { requireLoad } from '../../postgres/stores/read-loads.ts';
import { worded } from '../../validation.ts';
import { jobParameters, optionalNumber } from '../parameters.ts';
import { hasScope, requireScope } from '../plugins/auth.ts';
import { actionHeaders, idempotencyKeyOf } from '../request-headers.ts';
import { type Route, route } from '../route.ts';
import { jobFilterFields, readJobFilter } from './jobs.ts';

const cancel = route({
  at: 'POST /v1/background_jobs/:job_id/cancel',
  operationId: 'cancelJob',
  summary: 'Cancel a background job',
  description:
    'Stops a job that has not ended. Rows that it has written stay. A deletion cannot be cancelled.',
  access: 'import',
  params: jobParameters,
  headers: actionHeaders,
  answer: { status: 202, description: 'The job is cancelled.', schema: jobRecord.ref },
  refuses: ['job_not_cancellable'],
  handle: async ({ system, request, params, environment, base }) => {
    const job = await requireJob(system, environment, params.job_id);
    if (job.kind === 'export') requireScope(request, 'export');
    return renderJob(await cancelFoundJob(system, environment, job, idempotencyKeyOf(request)), base());
  },
});

const retry = route({
  at: 'POST /v1/background_jobs/:job_id/retry',
  operationId: 'retryJob',
  summary: 'Retry a background job',
  description: 'Queues a failed or cancelled job again. It continues with what is left.',
  access: 'import',
  params: jobParameters,
  headers: actionHeaders,
  answer: { status: 202, description: 'The job is queued again.', schema: jobRecord.ref },
  refuses: ['job_not_retryable', 'job_expired'],
  handle: async ({ system, request, params, environment, base }) => {
    const jobId = params.job_id;
    await requireRetryable(system, environment, jobId);
    await retryLoad(system, environment, jobId, idempotencyKeyOf(request));
    const load = await requireLoad(system, environment, jobId);
    // The answer shows what this request did; a worker may have begun, and even ended.
    return renderLoad({ ...load, status: 'queued', endedAt: null }, base());
  },
});

const unknown = (name: string, known: readonly string[]) =>
  `There is no field ${JSON.stringify(name.slice(0, 100))} here; known: ${known.join(', ')}`;

const bulkBody = worded(
  object(
    {
      filter: worded(
        object(jobFilterFields, 'Parameters of `GET /v1/background_jobs`; `{}` matches all jobs.'),
        {
          says: { message: 'filter is an object' },
          unknown,
        },
      ),
      expected_count: optionalNumber(
        { minimum: 0 },
        'expected_count is a whole number',
        'The `count` of the previous answer. Without it nothing is done.',
      ),
    },
    'The jobs, and their expected number.',
  ),
  { unknown },
);

const confirmed =
  'Ask first without `expected_count`: nothing is done, and the answer has the number of jobs. Then send that number; if it has changed, nothing is done.';

const texts = {
  cancel: {
    operationId: 'cancelJobs',
    summary: 'Cancel background jobs by a filter',
    description: `Cancels the matching jobs that have not ended, at most ${MAX_BULK_JOBS}. Deletions are never included, exports only if the key has the scope \`export\`. ${confirmed}`,
    filter: { status: 'queued' },
  },
  retry: {
    operationId: 'retryJobs',
    summary: 'Retry background jobs by a filter',
    description: `Queues the matching loads that failed or were cancelled and whose files are still stored, at most ${MAX_BULK_JOBS}. ${confirmed}`,
    filter: { status: 'failed' },
  },
} as const;

function bulkRoute(action: JobAction): Route {
  const { filter, ...text } = texts[action];
  return route({
    at: `POST /v1/background_jobs/${action}`,
    ...text,
    access: 'import',
    json: {
      schema: bulkBody,
      examples: {
        ask: { summary: 'How many are there?', value: { filter } },
        act: { summary: 'These twelve', value: { filter, expected_count: 12 } },
      },
    },
    answer: { description: 'The result.', schema: bulkResult.ref },
    refuses: ['invalid_date', 'count_changed', 'too_many_records'],
    handle: async ({ system, request, environment, body }) => {
      const { count, done, refused } = await actOnJobs(system, environment, {
        action,
        filter: readJobFilter(body.filter),
        expectedCount: body.expected_count ?? null,
        withExports: hasScope(request, 'export'),
      });
      const reasons = refused.map(({ jobId, code, message }) => ({
        ...{ job_id: jobId, error_code: code, message },
      }));
      return { count, done, refused: reasons };
    },
  });
}

export const jobActionRoutes: readonly Route[] = [cancel, retry, bulkRoute('cancel'), bulkRoute('retry')];
