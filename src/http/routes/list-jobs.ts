import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { jobTypes, listJobs, renderJobListItem } from '../../background-jobs/jobs.ts';
import type { System } from '../../context.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_BYTES } from '../../domain/limits.ts';
import { ruled, worded } from '../../validation.ts';
import { baseUrl, jobPage, nextLink, readJobCursor, writeJobCursor } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { listQuery } from '../plugins/validation.ts';
import { component, named, refusals } from '../schemas/answers.ts';
import { listItemFields, statusParameter } from '../schemas/job-record.ts';

export const jobListItem = component(
  'JobListItem',
  Type.Object(listItemFields, {
    additionalProperties: false,
    description: 'A background job as the list shows it.',
  }),
);
type JobListItem = Static<typeof jobListItem.schema>;

const notSince = 'since is YYYY-MM-DD or an ISO 8601 instant';
const since = Type.String({
  description:
    'Only jobs accepted at or after this: `YYYY-MM-DD`, or an ISO 8601 instant, UTC unless it says otherwise.',
  examples: ['2026-11-20T12:00:00Z'],
});

const query = listQuery({
  ...jobPage,
  status: statusParameter('Only jobs in this state.'),
  type: Type.Optional(
    worded(
      Type.Enum([...jobTypes], { type: 'string', description: 'Only jobs of this type.' }),
      `type is one of ${jobTypes.join(', ')}`,
    ),
  ),
  since: Type.Optional(
    worded(
      ruled(since, (text) => (readInstant(text) === null ? notSince : null)),
      { says: { code: 'invalid_date', message: notSince } },
    ),
  ),
});

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
    const { limit = DEFAULT_PAGE_SIZE, cursor = '', type, status, since = '' } = request.query;
    const filter = { type, status, since: readInstant(since) ?? undefined };
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
