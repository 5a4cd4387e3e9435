import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { jobListItem } from '../../api/job.ts';
import { jobTypes, listJobs, renderJobListItem } from '../../background-jobs/jobs.ts';
import type { System } from '../../context.ts';
import { DEFAULT_PAGE_SIZE, MAX_FILTER_BYTES, MAX_PAGE_BYTES } from '../../domain/limits.ts';
import type { JobFilter } from '../../postgres/stores/background-jobs.ts';
import { ruled, textProblem, worded } from '../../validation.ts';
import { baseUrl, jobPage, nextLink, readJobCursor, writeJobCursor } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { listQuery } from '../plugins/validation.ts';
import { named, readSeveral, refusals, severalOf } from '../schemas/answers.ts';
import { statusParameter } from '../schemas/job-record.ts';

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
