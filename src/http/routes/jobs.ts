import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { deletionJobDetail, type idOutcome, outcomePage } from '../../api/deletion.ts';
import { exportJobDetail } from '../../api/export.ts';
import { jobHistory, jobListItem } from '../../api/job.ts';
import { chunkPage, jobDetail, type loadChunk } from '../../api/load.ts';
import { withExamples } from '../../api/schema.ts';
import {
  jobTypes,
  listJobs,
  renderJobDetail,
  renderJobListItem,
  requireJob,
} from '../../background-jobs/jobs.ts';
import type { System } from '../../context.ts';
import {
  exportOutcomes,
  listOutcomes,
  renderOutcome,
  requireDeletion,
} from '../../deletion/inspect-deletions.ts';
import { DEFAULT_PAGE_SIZE, MAX_FILTER_BYTES, MAX_PAGE_BYTES } from '../../domain/limits.ts';
import { renderLiveChunk } from '../../live/views.ts';
import { type JobFilter, readChunks, readJobHistory } from '../../postgres/stores/background-jobs.ts';
import { ruled, textProblem, worded } from '../../validation.ts';
import { addRowsOfJob, rowQuery } from '../job-rows.ts';
import {
  baseUrl,
  jobPage,
  nextLink,
  readJobCursor,
  readRowCursor,
  sendEnvelope,
  writeJobCursor,
  writeRowCursor,
} from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { listQuery } from '../plugins/validation.ts';
import { jobRefusals, named, readSeveral, refusals, severalOf } from '../schemas/answers.ts';
import { jobIdOf, jobParameters, statusParameter } from '../schemas/job-record.ts';

type JobListItem = Static<typeof jobListItem.schema>;

const notSince = 'since is YYYY-MM-DD or an ISO 8601 instant';

const since = Type.String({
  description:
    'Only jobs accepted at or after this: `YYYY-MM-DD`, or an ISO 8601 instant, UTC unless it says otherwise.',
  examples: ['2026-11-20T12:00:00Z'],
});

const notUntil = 'until is YYYY-MM-DD or an ISO 8601 instant';

/** What jobs are found by, in a query or in the filter of a request. */
export const jobFilterFields = {
  status: statusParameter('Only jobs in this state.'),
  type: severalOf('type', jobTypes, 'Only jobs of this type.'),
  since: Type.Optional(
    worded(
      ruled(since, (text) => (readInstant(text) === null ? notSince : null)),
      { says: { code: 'invalid_date', message: notSince } },
    ),
  ),
  until: Type.Optional(
    worded(
      ruled(
        Type.String({ description: 'Only jobs accepted before this; as `since`.', examples: ['2026-11-21'] }),
        (text) => (readInstant(text) === null ? notUntil : null),
      ),
      { says: { code: 'invalid_date', message: notUntil } },
    ),
  ),
  filename: filterText('filename', 'Only loads with this in the name of their file, in any case.'),
  sha256: Type.Optional(
    worded(
      Type.String({
        pattern: '^[0-9a-fA-F]{64}$',
        description: 'Only loads of a file with these bytes, as received.',
        examples: ['3b'.repeat(32)],
      }),
      'sha256 has 64 hexadecimal digits',
    ),
  ),
  key: filterText('key', 'Only jobs that were started with the API key of this id.'),
  request_id: filterText('request_id', 'Only jobs of the request with this `x-request-id`.'),
  has_rejects: Type.Optional(
    worded(
      Type.Literal('true', {
        description: '`true`: only completed loads with refused records that have not been mended.',
      }),
      'has_rejects is true',
    ),
  ),
  idempotency_key: filterText(
    'idempotency_key',
    'Only the job of the request with this `Idempotency-Key`, in the last 24 hours.',
  ),
};

const query = listQuery({ ...jobPage, ...jobFilterFields });

/** What a request says of jobs, as the ledger is asked for it. */
export function readJobFilter(given: JobFilterFields): JobFilter {
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

export type JobFilterFields = Omit<Static<typeof query>, 'limit' | 'cursor'>;

function filterText(name: string, description: string) {
  const text = ruled(Type.String({ description }), (value) => {
    const problem = textProblem(value, MAX_FILTER_BYTES);
    return problem === null ? null : `${name} ${problem}`;
  });
  return Type.Optional(
    worded(text, {
      says: (value) => ({ message: `${name} ${textProblem(String(value), MAX_FILTER_BYTES)}` }),
    }),
  );
}

const listJobsSchema = {
  operationId: 'listJobs',
  summary: 'List background jobs',
  description:
    'The jobs of the environment, newest first. The body is a bare array: the next page is in `Link`. A body of the request is ignored; other parameters are refused.',
  tags: ['jobs'],
  querystring: query,
  response: {
    200: {
      description: 'A page of jobs.',
      headers: named('X-Total-Count', 'Link'),
      content: { 'application/json': { schema: Type.Array(jobListItem.ref) } },
    },
    ...refusals('invalid_field', 'invalid_cursor', 'invalid_date'),
  },
} satisfies FastifySchema;

/** Newest first; a bare array, its continuation in the headers. */
export function listJobsRoute(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'read', answerBytes: MAX_PAGE_BYTES }, schema: listJobsSchema } as const;
  app.get<{ Querystring: Static<typeof query> }>('/v1/background_jobs', options, async (request, reply) => {
    const { limit = DEFAULT_PAGE_SIZE, cursor = '', ...given } = request.query;
    const filter = readJobFilter(given);
    const after = readJobCursor(cursor);
    const page = await listJobs(system.reader, environmentId(request), filter, { limit, after });
    const base = baseUrl(request, system.config.publicUrl);
    reply.header('x-total-count', String(page.total));
    if (page.next !== null) reply.header('link', nextLink(request, base, writeJobCursor(page.next)));
    const now = new Date();
    return reply.send(page.jobs.map((job): JobListItem => renderJobListItem(job, base, now)));
  });
}

const instant = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/i;

/** `YYYY-MM-DD` (from its beginning, in UTC) or an ISO 8601 instant, in UTC unless it says otherwise; null for what is neither. */
function readInstant(text: string): Date | null {
  // A plus sign that was not escaped reaches us as a blank; one before a time of day stands further left.
  const repaired = text.length > 'YYYY-MM-DD hh:mm'.length ? text.replace(/ (\d{2}:?\d{2})$/, '+$1') : text;
  const zoned = /(?:Z|[+-]\d{2}:?\d{2})$/i.test(repaired.slice(10)) ? repaired : `${repaired}Z`;
  const date = new Date(repaired.length === 10 ? repaired : zoned.replace(' ', 'T'));
  const day = repaired.slice(0, 10);
  const isDay = !Number.isNaN(Date.parse(day)) && new Date(day).toISOString().startsWith(day);
  if (instant.test(repaired) && isDay && !Number.isNaN(date.getTime())) return date;
  return null;
}

type JobDetail = Static<typeof jobDetail.schema>;

type ExportJobDetail = Static<typeof exportJobDetail.schema>;

type DeletionJobDetail = Static<typeof deletionJobDetail.schema>;

const showJobSchema = {
  operationId: 'showJob',
  summary: 'Show a background job',
  description: 'The job with its progress, its counts and, if it failed, why.',
  tags: ['jobs'],
  params: jobParameters,
  response: {
    200: {
      description: 'The job.',
      content: {
        'application/json': {
          schema: Type.Union([jobDetail.ref, exportJobDetail.ref, deletionJobDetail.ref]),
        },
      },
    },
    ...jobRefusals(),
  },
} satisfies FastifySchema;

export function showJob(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'read' }, schema: showJobSchema } as const;
  app.get('/v1/background_jobs/:job_id', options, async (request, reply) => {
    const jobId = jobIdOf(request);
    const environment = environmentId(request);
    const job = await requireJob(system.reader, environment, jobId);
    const base = baseUrl(request, system.config.publicUrl);
    const detail: JobDetail | ExportJobDetail | DeletionJobDetail = await renderJobDetail(
      system.reader,
      environment,
      job,
      base,
    );
    return reply.send(detail);
  });
}

const showHistorySchema = {
  operationId: 'showJobHistory',
  summary: 'Show what came before a background job',
  description:
    'Who or what started it, by which request and with which parameters; and when it reached each phase.',
  tags: ['jobs'],
  params: jobParameters,
  response: {
    200: { description: 'The history.', content: { 'application/json': { schema: jobHistory.ref } } },
    ...jobRefusals(),
  },
} satisfies FastifySchema;

export function showHistory(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'read' }, schema: showHistorySchema } as const;
  app.get('/v1/background_jobs/:job_id/history', options, async (request, reply) => {
    const jobId = jobIdOf(request);
    const { requestId, origin, parameters, isCut, phases } = await readJobHistory(
      system.reader.db,
      environmentId(request),
      jobId,
    );
    const answer: Static<typeof jobHistory.schema> = {
      job_id: jobId,
      request_id: requestId,
      origin,
      parameters,
      parameters_cut: isCut,
      phases: phases.map(({ phase, at }) => ({ phase, at: at.toISOString() })),
    };
    return reply.send(answer);
  });
}

const listChunksSchema = {
  operationId: 'listChunks',
  summary: 'List the chunks of a load',
  description: 'In the order of the file: who does each, who did it, and how long that took.',
  tags: ['jobs'],
  params: jobParameters,
  querystring: rowQuery,
  response: {
    200: {
      description: 'A page of chunks.',
      headers: named('Link'),
      content: { 'application/json': { schema: chunkPage.ref } },
    },
    ...jobRefusals('invalid_cursor'),
  },
} satisfies FastifySchema;

interface ChunksRequest {
  Params: Static<typeof jobParameters>;
  Querystring: Static<typeof rowQuery>;
}

export function listChunksRoute(app: FastifyInstance, system: System): void {
  const options = {
    config: { scope: 'read', answerBytes: MAX_PAGE_BYTES },
    schema: listChunksSchema,
  } as const;
  app.get<ChunksRequest>('/v1/background_jobs/:job_id/chunks', options, async (request, reply) => {
    const { limit = DEFAULT_PAGE_SIZE, cursor = '' } = request.query;
    const after = Math.min(readRowCursor(cursor) ?? 0, lastChunk);
    const page = await readChunks(system.reader.db, environmentId(request), jobIdOf(request), {
      limit,
      after,
    });
    const items = page.chunks.map((chunk): Static<typeof loadChunk.schema> => renderLiveChunk(chunk));
    return sendEnvelope(request, reply, system.config.publicUrl, {
      items: items.map((item) => JSON.stringify(item)),
      next: page.more ? writeRowCursor(after + items.length) : null,
      limit,
      more: { total_count: page.total },
    });
  });
}

/** There can be none beyond it. */
const lastChunk = 2 ** 31 - 1;

type IdOutcomeItem = Static<typeof idOutcome.schema>;

const listOutcomesSchema = {
  operationId: 'listOutcomes',
  summary: 'List what became of the ids of a deletion',
  description:
    'By `Accept`: a page of them as JSON (also where nothing else is wanted), or all of them as CSV or NDJSON.',
  tags: ['deletions'],
  params: jobParameters,
  querystring: rowQuery,
  response: {
    200: {
      description:
        'The outcomes, in the order of the request. `Link` comes with JSON, `Content-Disposition` with files.',
      headers: named('Link', 'Content-Disposition', 'Vary'),
      content: {
        'application/json': { schema: outcomePage.ref },
        'text/csv': withExamples(
          Type.String({ description: 'The columns `id`, `outcome`, `events`, `users`.' }),
          { outcomes: { summary: 'One id', value: 'id,outcome,events,users\nu1,deleted,3,0\n' } },
        ),
        'application/x-ndjson': withExamples(Type.String({ description: 'The items of the JSON pages.' }), {
          outcomes: {
            summary: 'One id',
            value: '{"id":"u1","outcome":"deleted","events":3,"users":0}\n',
          },
        }),
      },
    },
    ...jobRefusals('invalid_cursor'),
  },
} satisfies FastifySchema;

/** What became of each id of a deletion. */
export function listOutcomesOfJob(app: FastifyInstance, system: System): void {
  addRowsOfJob(app, system, {
    name: 'outcomes',
    schema: listOutcomesSchema,
    lastPosition: 2 ** 31 - 1,
    list: async (environmentId, jobId, page) => {
      const { outcomes, more, total } = await listOutcomes(system.reader, environmentId, jobId, page);
      const rows = outcomes.map((outcome) => ({
        position: outcome.position,
        row: renderOutcome(outcome) satisfies IdOutcomeItem,
      }));
      return { rows, more, metadata: { total_count: total } };
    },
    requireJob: (...which) => requireDeletion(system.reader, ...which),
    export: (environmentId, jobId, format) => exportOutcomes(system, environmentId, jobId, format),
  });
}
