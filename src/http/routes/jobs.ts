import { type Static, Type } from 'typebox';
import { deletionJobDetail } from '../../api/deletion.ts';
import { exportJobDetail } from '../../api/export.ts';
import { jobHistory, jobListItem } from '../../api/job.ts';
import { chunkPage, jobDetail } from '../../api/load.ts';
import { render } from '../../api/render.ts';
import {
  jobTypes,
  listJobs,
  renderJobDetail,
  renderJobListItem,
  requireJob,
} from '../../background-jobs/jobs.ts';
import { DEFAULT_PAGE_SIZE, MAX_INTEGER } from '../../domain/limits.ts';
import { renderLiveChunk } from '../../live/views.ts';
import { type JobFilter, readChunks, readJobHistory } from '../../postgres/stores/background-jobs.ts';
import { ruled, worded } from '../../validation.ts';
import { rowQuery } from '../job-rows.ts';
import {
  jobPage,
  linkNext,
  pageBytes,
  readJobCursor,
  readRowCursor,
  sendEnvelope,
  writeJobCursor,
  writeRowCursor,
} from '../page.ts';
import { jobParameters, readSeveral, severalOf, statusParameter, textParameter } from '../parameters.ts';
import { listQuery } from '../plugins/validation.ts';
import { type Route, route } from '../route.ts';

const maxFilterBytes = 512;

function acceptedAt(name: string, description: string, example: string) {
  const message = `${name} is YYYY-MM-DD or an ISO 8601 instant`;
  const text = Type.String({ description, examples: [example] });
  return Type.Optional(
    worded(
      ruled(text, (value) => (readInstant(value) === null ? message : null)),
      { says: { code: 'invalid_date', message } },
    ),
  );
}

export const jobFilterFields = {
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
  sha256: Type.Optional(
    worded(
      Type.String({
        pattern: '^[0-9a-fA-F]{64}$',
        description: 'Only return loads of a file with this SHA-256, as received.',
        examples: ['3b'.repeat(32)],
      }),
      'sha256 has 64 hexadecimal digits',
    ),
  ),
  key: textParameter('key', maxFilterBytes, 'Only return jobs started with the API key of this ID.'),
  request_id: textParameter(
    'request_id',
    maxFilterBytes,
    'Only return jobs of the request with this `x-request-id`.',
  ),
  has_rejects: Type.Optional(
    worded(
      Type.Literal('true', {
        description: '`true`: only return completed loads with refused records that have not been mended.',
      }),
      'has_rejects is true',
    ),
  ),
  idempotency_key: textParameter(
    'idempotency_key',
    maxFilterBytes,
    'Only return the job of the request with this `Idempotency-Key`, in the last 24 hours.',
  ),
};

const query = listQuery({ ...jobPage, ...jobFilterFields });

export function readJobFilter(given: Omit<Static<typeof query>, 'limit' | 'cursor'>): JobFilter {
  const { type, status, since = '', until = '', filename, sha256, key } = given;
  return {
    types: readSeveral(type),
    statuses: readSeveral(status),
    since: readInstant(since) ?? undefined,
    until: readInstant(until) ?? undefined,
    filename,
    sha256,
    key,
    requestId: given.request_id,
    idempotencyKey: given.idempotency_key,
    hasRejects: given.has_rejects === 'true',
  };
}

const instant = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/i;

/** Reads `YYYY-MM-DD` (from its beginning, in UTC) or an ISO 8601 instant, in UTC unless it has an offset; `null` for any other text. */
function readInstant(text: string): Date | null {
  // A plus sign that was not escaped reaches us as a blank; the blank before a time of day stands further left.
  const repaired = text.length > 'YYYY-MM-DD hh:mm'.length ? text.replace(/ (\d{2}:?\d{2})$/, '+$1') : text;
  const zoned = /(?:Z|[+-]\d{2}:?\d{2})$/i.test(repaired.slice(10)) ? repaired : `${repaired}Z`;
  const date = new Date(repaired.length === 10 ? repaired : zoned.replace(' ', 'T'));
  const day = repaired.slice(0, 10);
  const isDay = !Number.isNaN(Date.parse(day)) && new Date(day).toISOString().startsWith(day);
  if (instant.test(repaired) && isDay && !Number.isNaN(date.getTime())) return date;
  return null;
}

const list = route({
  at: 'GET /v1/background_jobs',
  operationId: 'listJobs',
  summary: 'List background jobs',
  description:
    'Lists the jobs of the environment, newest first. The body is a bare array; the next page is in `Link`. A request body is ignored; unknown parameters are refused.',
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
    const { limit = DEFAULT_PAGE_SIZE, cursor = '', ...given } = call.query;
    const after = readJobCursor(cursor);
    const page = await listJobs(reader, call.environment, readJobFilter(given), { limit, after });
    call.reply.header('x-total-count', String(page.total));
    linkNext(call, page.next === null ? null : writeJobCursor(page.next));
    const [base, now] = [call.base(), new Date()];
    return page.jobs.map((job) => renderJobListItem(job, base, now));
  },
});

const show = route({
  at: 'GET /v1/background_jobs/:job_id',
  operationId: 'showJob',
  summary: 'Show a background job',
  description: 'Returns the job with its progress, its counts and, if it failed, the reason.',
  access: 'read',
  params: jobParameters,
  answer: {
    description: 'The job.',
    schema: Type.Union([jobDetail.ref, exportJobDetail.ref, deletionJobDetail.ref]),
  },
  handle: async ({ system: { reader }, params, environment, base }) => {
    const job = await requireJob(reader, environment, params.job_id);
    return renderJobDetail(reader, environment, job, base());
  },
});

const showHistory = route({
  at: 'GET /v1/background_jobs/:job_id/history',
  operationId: 'showJobHistory',
  summary: 'Show the history of a background job',
  description:
    'Returns what started the job, the request and its parameters, and when the job reached each phase.',
  access: 'read',
  params: jobParameters,
  answer: { description: 'The history.', schema: jobHistory.ref },
  handle: async ({ system: { reader }, params, environment }) => {
    const jobId = params.job_id;
    const found = await readJobHistory(reader.db, environment, jobId);
    return {
      job_id: jobId,
      request_id: found.requestId,
      origin: found.origin,
      parameters: found.parameters,
      parameters_cut: found.isCut,
      phases: found.phases.map(render),
    };
  },
});

const listChunks = route({
  at: 'GET /v1/background_jobs/:job_id/chunks',
  operationId: 'listChunks',
  summary: 'List the chunks of a load',
  description: 'Lists the chunks in the order of the file, each with its worker and its duration.',
  access: 'read',
  config: pageBytes,
  params: jobParameters,
  query: rowQuery,
  answer: { description: 'A page of chunks.', headers: ['Link'], schema: chunkPage.ref },
  handle: async (call) => {
    const { reader } = call.system;
    const { limit = DEFAULT_PAGE_SIZE, cursor = '' } = call.query;
    const after = Math.min(readRowCursor(cursor) ?? 0, MAX_INTEGER);
    const jobId = call.params.job_id;
    const page = await readChunks(reader.db, call.environment, jobId, { limit, after });
    return sendEnvelope(call, {
      items: page.chunks.map((chunk) => JSON.stringify(renderLiveChunk(chunk))),
      next: page.more ? writeRowCursor(after + page.chunks.length) : null,
      limit,
      more: { total_count: page.total },
    });
  },
});

export const jobRoutes: readonly Route[] = [list, show, showHistory, listChunks];
