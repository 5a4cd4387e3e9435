import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { type JobType, jobTypes, listJobs } from '../../background-jobs/find-jobs.ts';
import { renderJobListItem } from '../../background-jobs/render-job.ts';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import { MAX_PAGE_BYTES } from '../../domain/limits.ts';
import { type LoadStatus, loadStatuses } from '../../domain/load.ts';
import { baseUrl, nextLink } from '../links.ts';
import { PageQuery, pageParameters, readJobCursor, writeJobCursor } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { named, refusals } from '../schemas/answers.ts';
import { component } from '../schemas/component.ts';
import { listItemFields } from '../schemas/job-record.ts';

export const jobListItem = component(
  'JobListItem',
  Type.Object(listItemFields, {
    additionalProperties: false,
    description: 'A background job as the list shows it.',
  }),
);
type JobListItem = Static<typeof jobListItem.schema>;

const listJobsSchema = {
  operationId: 'listJobs',
  summary: 'List background jobs',
  description:
    'The jobs of the environment, newest first. The body is a bare array: the next page is in `Link`. A body of the request is ignored; other parameters are refused.',
  tags: ['jobs'],
  querystring: Type.Object({
    ...pageParameters,
    type: Type.Optional(Type.Enum([...jobTypes], { type: 'string', description: 'Only jobs of this type.' })),
    status: Type.Optional(
      Type.Enum([...loadStatuses], { type: 'string', description: 'Only jobs in this state.' }),
    ),
    since: Type.Optional(
      Type.String({
        description:
          'Only jobs accepted at or after this: `YYYY-MM-DD`, or an ISO 8601 instant, UTC unless it says otherwise.',
        examples: ['2026-11-20T12:00:00Z'],
      }),
    ),
  }),
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
  app.get('/v1/background_jobs', options, async (request, reply) => {
    const query = readListJobsQuery(request.query);
    const page = await listJobs(system.reader, environmentId(request), query, query);
    const base = baseUrl(request, system.config.publicUrl);
    reply.header('x-total-count', String(page.total));
    if (page.next !== null) reply.header('link', nextLink(request, base, writeJobCursor(page.next)));
    const now = new Date();
    return reply.send(page.jobs.map((job): JobListItem => renderJobListItem(job, base, now)));
  });
}

interface ListJobsQuery {
  readonly limit: number;
  readonly after: string | null;
  readonly type: JobType | undefined;
  readonly status: LoadStatus | undefined;
  readonly since: Date | undefined;
}

/** Of exports, which are all of one type. @throws InputError `invalid_field`, `invalid_cursor`. */
export function readListExportsQuery(parameters: unknown): Pick<ListJobsQuery, 'limit' | 'after' | 'status'> {
  const query = new PageQuery(parameters);
  const read = readCommon(query);
  query.check();
  return read;
}

function readCommon(query: PageQuery): Pick<ListJobsQuery, 'limit' | 'after' | 'status'> {
  return {
    limit: query.limit(),
    after: query.read('cursor', null, readJobCursor),
    status: query.read('status', undefined, (text) => choose('status', text, loadStatuses)),
  };
}

/** @throws InputError `invalid_field`, `invalid_cursor`, `invalid_date`. */
function readListJobsQuery(parameters: unknown): ListJobsQuery {
  const query = new PageQuery(parameters);
  const read: ListJobsQuery = {
    ...readCommon(query),
    type: query.read('type', undefined, (text) => choose('type', text, jobTypes)),
    since: query.read('since', undefined, readInstant),
  };
  query.check();
  return read;
}

function choose<T extends string>(name: string, text: string, allowed: readonly T[]): T {
  const found = allowed.find((each) => each === text);
  if (found !== undefined) return found;
  throw inputError('invalid_field', `${name} is one of ${allowed.join(', ')}`, name);
}

const instant = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/i;

/** `YYYY-MM-DD` (from its beginning, in UTC) or an ISO 8601 instant, in UTC unless it says otherwise. */
function readInstant(text: string): Date {
  // A plus sign that was not escaped reaches us as a blank; one before a time of day stands further left.
  const repaired = text.length > 'YYYY-MM-DD hh:mm'.length ? text.replace(/ (\d{2}:?\d{2})$/, '+$1') : text;
  const zoned = /(?:Z|[+-]\d{2}:?\d{2})$/i.test(repaired.slice(10)) ? repaired : `${repaired}Z`;
  const date = new Date(repaired.length === 10 ? repaired : zoned.replace(' ', 'T'));
  const day = repaired.slice(0, 10);
  const isDay = !Number.isNaN(Date.parse(day)) && new Date(day).toISOString().startsWith(day);
  if (instant.test(repaired) && isDay && !Number.isNaN(date.getTime())) return date;
  throw inputError('invalid_date', 'since is YYYY-MM-DD or an ISO 8601 instant', 'since');
}
