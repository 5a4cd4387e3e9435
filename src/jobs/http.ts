import { type Static, Type } from 'typebox';
import { readInstant } from '../base/instant.ts';
import { optional } from '../base/validation.ts';
import { deletionJobDetail } from '../deletion/api.ts';
import { exportJobDetail } from '../export/api.ts';
import { callerOrigin, requireScope } from '../http/caller.ts';
import { jobListItem, jobRecord } from '../http/job.ts';
import { askedPage, jobCursor, jobPage, linkJobs, pageBytes } from '../http/page.ts';
import {
  dateOf,
  dateParameter,
  idempotencyKeyOf,
  jobAction,
  jobParameters,
  readSeveral,
  severalOf,
  statusParameter,
  textParameter,
} from '../http/parameters.ts';
import { lenientQuery } from '../http/plugins/validation.ts';
import { renderJob, renderListedJob } from '../http/render.ts';
import { type Route, route } from '../http/route.ts';
import { jobDetail } from '../load/api.ts';
import { retryLoad } from '../load/retry.ts';
import { renderQueued } from '../load/upload/receive-upload.ts';
import { type JobFilter, pageJobs } from '../tasks/job-store.ts';
import { cancelFoundJob, jobTypes, renderJobDetail, requireJob, requireRetryable } from './jobs.ts';

const maxFilterBytes = 512;

const acceptedAt = (name: string, description: string, example: string) =>
  dateParameter(
    `${name} is YYYY-MM-DD or an ISO 8601 instant`,
    description,
    example,
    (text) => readInstant(repair(text)) !== null,
  );

const jobFilterFields = {
  status: statusParameter('Only return jobs in this state.'),
  type: severalOf('type', jobTypes, 'Only return jobs of this type.'),
  since: acceptedAt(
    'since',
    'Only return jobs accepted at or after this time: `YYYY-MM-DD`, or an ISO 8601 instant, in UTC unless it has an offset.',
    '2026-11-20T12:00:00Z',
  ),
  until: acceptedAt('until', 'Only return jobs accepted before this time; as `since`.', '2026-11-21'),
  filename: textParameter(
    'filename',
    maxFilterBytes,
    'Only return loads whose file name contains this text, ignoring case.',
  ),
  sha256: optional(
    Type.String({
      pattern: '^[0-9a-fA-F]{64}$',
      description: 'Only return loads of a file with this SHA-256, as received.',
      examples: ['3b'.repeat(32)],
    }),
    'sha256 has 64 hexadecimal digits',
  ),
  key: textParameter('key', maxFilterBytes, 'Only return jobs started with the API key of this ID.'),
  request_id: textParameter(
    'request_id',
    maxFilterBytes,
    'Only return jobs of the request with this `x-request-id`.',
  ),
  has_rejects: optional(
    Type.Literal('true', {
      description: '`true`: only return completed loads with refused records.',
    }),
    'has_rejects is true',
  ),
  idempotency_key: textParameter(
    'idempotency_key',
    maxFilterBytes,
    'Only return the job of the request with this `Idempotency-Key`, in the last 24 hours.',
  ),
};

const query = lenientQuery({
  ...jobPage,
  ...jobFilterFields,
});

function readJobFilter(filters: Omit<Static<typeof query>, 'limit' | 'cursor'>): JobFilter {
  const { type, status, since = '', until = '', filename, sha256, key } = filters;
  return {
    types: readSeveral(type),
    statuses: readSeveral(status),
    since: dateOf(repair(since)) ?? undefined,
    until: dateOf(repair(until)) ?? undefined,
    filename,
    sha256,
    key,
    requestId: filters.request_id,
    idempotencyKey: filters.idempotency_key,
    hasRejects: filters.has_rejects === 'true',
  };
}

/**
 * Restores the plus sign of an offset. In a URL, an unescaped plus sign means a space. A short text
 * has no offset: its only space is before the time of day.
 */
const repair = (text: string) =>
  text.length > 'YYYY-MM-DD hh:mm'.length ? text.replace(/ (\d{2}:?\d{2})$/, '+$1') : text;

const list = route({
  at: 'GET /v1/background_jobs',
  operationId: 'listJobs',
  summary: 'List background jobs',
  description:
    'Lists the jobs of the environment, newest first. The body is a bare array; the next page is in `Link`. A request body is ignored.',
  access: 'read',
  config: pageBytes,
  query,
  answer: {
    description: 'A page of jobs.',
    headers: ['X-Total-Count', 'Link'],
    schema: Type.Array(jobListItem.ref),
  },
  refuses: ['invalid_date'],
  handle: async (call) => {
    const { reader } = call.system;
    const pageRequest = askedPage(call.query, jobCursor);
    const page = await pageJobs(reader.db, call.environment, readJobFilter(call.query), pageRequest);
    linkJobs(call, page);
    const base = call.base();
    const now = new Date();
    return page.jobs.map((job) => renderListedJob(job, base, now));
  },
});

const show = route({
  at: 'GET /v1/background_jobs/:job_id',
  operationId: 'showJob',
  summary: 'Show a background job',
  description:
    'Returns the document of the run, with the progress of the job: what started it, its files and options, its counts, when it reached each phase and, if it failed, the reason.',
  access: 'read',
  params: jobParameters,
  answer: {
    description: 'The job.',
    schema: Type.Union([jobDetail.ref, exportJobDetail.ref, deletionJobDetail.ref]),
  },
  handle: async ({ system: { reader, loads }, params, environment, base }) => {
    const job = await requireJob(reader, environment, params.job_id);
    return renderJobDetail({ ...reader, loads }, environment, job, base());
  },
});

const cancel = route({
  at: 'POST /v1/background_jobs/:job_id/cancel',
  operationId: 'cancelJob',
  summary: 'Cancel a background job',
  description:
    'Stops a job that has not ended, or discards a held load. Rows that it has written stay. A deletion cannot be cancelled.',
  ...jobAction,
  answer: { status: 202, description: 'The job is cancelled.', schema: jobRecord.ref },
  refuses: ['job_not_cancellable'],
  handle: async ({ system, request, params, environment, base }) => {
    const job = await requireJob(system, environment, params.job_id);
    if (job.kind === 'export') requireScope(request, 'export');
    const action = { by: callerOrigin(request), idempotencyKey: idempotencyKeyOf(request) };
    return renderJob(await cancelFoundJob(system, environment, job, action), base());
  },
});

const retry = route({
  at: 'POST /v1/background_jobs/:job_id/retry',
  operationId: 'retryJob',
  summary: 'Retry a background job',
  description: 'Queues a failed or cancelled job again. It continues with what is left.',
  ...jobAction,
  answer: { status: 202, description: 'The job is queued again.', schema: jobRecord.ref },
  refuses: ['job_not_retryable', 'job_expired'],
  handle: async ({ system, request, params, environment, base }) => {
    const jobId = params.job_id;
    await requireRetryable(system, environment, jobId);
    await retryLoad(system, environment, jobId, idempotencyKeyOf(request));
    return renderQueued({ system, environment, base }, jobId);
  },
});

export const jobRoutes: readonly Route[] = [list, show, cancel, retry];
