import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { bulkResult } from '../../api/job.ts';
import { withExamples } from '../../api/schema.ts';
import { actOnJobs } from '../../background-jobs/bulk.ts';
import type { System } from '../../context.ts';
import { MAX_BULK_JOBS } from '../../domain/limits.ts';
import type { JobAction } from '../../postgres/stores/background-jobs.ts';
import { compileSchema, throwProblems, worded } from '../../validation.ts';
import { environmentId, hasScope } from '../plugins/auth.ts';
import { bodyBytes, readJsonObject } from '../plugins/json-body.ts';
import { refusals } from '../schemas/answers.ts';
import { type JobFilterFields, jobFilterFields, readJobFilter } from './list-jobs.ts';

const unknown = (name: string, known: readonly string[]) =>
  `There is no field ${JSON.stringify(name.slice(0, 100))} here; known: ${known.join(', ')}`;

const body = worded(
  Type.Object(
    {
      filter: worded(
        Type.Object(jobFilterFields, {
          additionalProperties: false,
          description: 'As the parameters of `GET /v1/background_jobs`; `{}`: all.',
        }),
        { says: { message: 'filter is an object' }, unknown },
      ),
      expected_count: Type.Optional(
        worded(
          Type.Integer({
            minimum: 0,
            description: 'The `count` of the answer before. Without it nothing is done.',
          }),
          'expected_count is a whole number',
        ),
      ),
    },
    { additionalProperties: false, description: 'Which jobs, and how many they are.' },
  ),
  { unknown },
);

const texts = {
  cancel: {
    operationId: 'cancelJobs',
    summary: 'Cancel background jobs by a filter',
    description: `Cancels the jobs that match and have not ended, ${MAX_BULK_JOBS} at most; deletions are never among them, exports if the key has the scope \`export\`. Ask first without \`expected_count\`: nothing is done, and the answer has the number. With it the jobs are cancelled, unless they are another number by now.`,
  },
  retry: {
    operationId: 'retryJobs',
    summary: 'Retry background jobs by a filter',
    description: `Queues the loads that match, failed or were cancelled, and still have their files, ${MAX_BULK_JOBS} at most. Ask first without \`expected_count\`: nothing is done, and the answer has the number. With it the loads are queued, unless they are another number by now.`,
  },
} as const;

const schema = (action: JobAction) =>
  ({
    ...texts[action],
    tags: ['jobs'],
    body: {
      content: {
        'application/json': withExamples(body, {
          ask: {
            summary: 'How many are there?',
            value: { filter: { status: action === 'cancel' ? 'queued' : 'failed' } },
          },
          act: {
            summary: 'These twelve',
            value: { filter: { status: action === 'cancel' ? 'queued' : 'failed' }, expected_count: 12 },
          },
        }),
      },
    },
    response: {
      200: { description: 'What was done.', content: { 'application/json': { schema: bulkResult.ref } } },
      ...refusals(
        'invalid_json',
        'missing_field',
        'invalid_field',
        'invalid_date',
        'upload_too_slow',
        'count_changed',
        'payload_too_large',
        'too_many_records',
        'unsupported_media_type',
      ),
    },
  }) satisfies FastifySchema;

const findProblems = compileSchema(body);

export function actOnJobsRoute(scope: FastifyInstance, system: System, action: JobAction): void {
  const options = { config: { scope: 'import' }, schema: schema(action) } as const;
  scope.post(`/v1/background_jobs/${action}`, options, async (request, reply) => {
    const given = readJsonObject(bodyBytes(request));
    throwProblems(findProblems(given));
    const { filter, expected_count: expectedCount = null } = given as {
      readonly filter: JobFilterFields;
      readonly expected_count?: number;
    };
    const { count, done, refused } = await actOnJobs(system, environmentId(request), {
      action,
      filter: readJobFilter(filter),
      expectedCount,
      withExports: hasScope(request, 'export'),
    });
    const answer: Static<typeof bulkResult.schema> = {
      count,
      done,
      refused: refused.map(({ jobId, code, message }) => ({ job_id: jobId, error_code: code, message })),
    };
    return reply.send(answer);
  });
}
