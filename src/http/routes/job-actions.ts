import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { bulkResult, jobRecord } from '../../api/job.ts';
import { withExamples } from '../../api/schema.ts';
import { uploadOfLoad } from '../../api/upload.ts';
import { actOnJobs } from '../../background-jobs/bulk.ts';
import { cancelFoundJob, renderJob, requireJob, requireRetryable } from '../../background-jobs/jobs.ts';
import type { System } from '../../context.ts';
import { MAX_BULK_JOBS } from '../../domain/limits.ts';
import { keepFileOfLoad } from '../../load/load-again.ts';
import { renderLoad } from '../../load/render-load.ts';
import { retryLoad } from '../../load/retry-load.ts';
import type { JobAction } from '../../postgres/stores/background-jobs.ts';
import { requireLoad } from '../../postgres/stores/read-loads.ts';
import { compileSchema, throwProblems, worded } from '../../validation.ts';
import { baseUrl } from '../page.ts';
import { environmentId, hasScope, requireScope } from '../plugins/auth.ts';
import { bodyBytes, readJsonObject } from '../plugins/json-body.ts';
import { actionHeaders, idempotencyKeyOf } from '../request-headers.ts';
import { jobRefusals, refusals } from '../schemas/answers.ts';
import { type JobRecord, jobIdOf, jobParameters } from '../schemas/job-record.ts';
import { renderUpload } from '../schemas/upload-record.ts';
import { type JobFilterFields, jobFilterFields, readJobFilter } from './jobs.ts';

const cancelJobSchema = {
  operationId: 'cancelJob',
  summary: 'Cancel a background job',
  description: 'Stops a job that has not ended. What it has applied stays. A deletion cannot be cancelled.',
  tags: ['jobs'],
  params: jobParameters,
  headers: Type.Object(actionHeaders),
  response: {
    202: { description: 'It is cancelled.', content: { 'application/json': { schema: jobRecord.ref } } },
    ...jobRefusals('job_not_cancellable', 'idempotency_conflict'),
  },
} satisfies FastifySchema;

export function cancelJob(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'import' }, schema: cancelJobSchema } as const;
  app.post('/v1/background_jobs/:job_id/cancel', options, async (request, reply) => {
    const jobId = jobIdOf(request);
    const environment = environmentId(request);
    const idempotencyKey = idempotencyKeyOf(request);
    const job = await requireJob(system, environment, jobId);
    if (job.kind === 'export') requireScope(request, 'export');
    const cancelled = await cancelFoundJob(system, environment, job, idempotencyKey);
    return reply
      .code(202)
      .send(renderJob(cancelled, baseUrl(request, system.config.publicUrl)) satisfies JobRecord);
  });
}

const retryJobSchema = {
  operationId: 'retryJob',
  summary: 'Retry a background job',
  description: 'Queues a job that failed or was cancelled again; it goes on with what is left.',
  tags: ['jobs'],
  params: jobParameters,
  headers: Type.Object(actionHeaders),
  response: {
    202: { description: 'It is queued again.', content: { 'application/json': { schema: jobRecord.ref } } },
    ...jobRefusals('job_not_retryable', 'job_expired', 'idempotency_conflict'),
  },
} satisfies FastifySchema;

export function retryJob(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'import' }, schema: retryJobSchema } as const;
  app.post('/v1/background_jobs/:job_id/retry', options, async (request, reply) => {
    const jobId = jobIdOf(request);
    const environment = environmentId(request);
    await requireRetryable(system, environment, jobId);
    await retryLoad(system, environment, jobId, idempotencyKeyOf(request));
    const load = await requireLoad(system, environment, jobId);
    // What it was made by this request; a worker may have begun, and even ended.
    const queued = { ...load, status: 'queued', endedAt: null } as const;
    return reply
      .code(202)
      .send(renderLoad(queued, baseUrl(request, system.config.publicUrl)) satisfies JobRecord);
  });
}

type UploadOfLoad = Static<typeof uploadOfLoad.schema>;

const loadAgainSchema = {
  operationId: 'loadAgain',
  summary: 'Take the file of a load again',
  description:
    'Makes an upload of the file that a load has stored, to be inspected and loaded with other options, such as another `map`. Nothing is sent or copied; the upload goes after a day, or with the stored file.',
  tags: ['loads'],
  params: jobParameters,
  response: {
    201: {
      description: 'The upload, and how the job read it.',
      content: { 'application/json': { schema: uploadOfLoad.ref } },
    },
    ...jobRefusals('job_expired', 'job_not_retryable'),
  },
} satisfies FastifySchema;

/** What a load has stored, to be loaded again in another way. */
export function loadAgain(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'import' }, schema: loadAgainSchema } as const;
  app.post('/v1/background_jobs/:job_id/upload', options, async (request, reply) => {
    const { upload, options } = await keepFileOfLoad(system, environmentId(request), jobIdOf(request));
    return reply.code(201).send({ ...renderUpload(upload), options } satisfies UploadOfLoad);
  });
}

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
