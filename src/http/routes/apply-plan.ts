import type { FastifyInstance, FastifyRequest, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { jobRecord } from '../../api/job.ts';
import { applyBody } from '../../api/plan.ts';
import { withExamples } from '../../api/schema.ts';
import type { System } from '../../context.ts';
import type { OnDrift } from '../../domain/load.ts';
import { applyPlan } from '../../load/apply-plan.ts';
import { renderLoad } from '../../load/render-load.ts';
import { requireLoad } from '../../postgres/stores/read-loads.ts';
import { compileSchema, throwProblems } from '../../validation.ts';
import { baseUrl } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { bodyBytes, readJsonObject } from '../plugins/json-body.ts';
import { actionHeaders, idempotencyKeyOf } from '../request-headers.ts';
import { jobRefusals } from '../schemas/answers.ts';
import { type JobRecord, jobIdOf, jobParameters } from '../schemas/job-record.ts';

const findProblems = compileSchema(applyBody);

/** No body is an empty one. @throws InputError with everything that is wrong. */
function readOnDrift(request: FastifyRequest): OnDrift {
  const value = readJsonObject(bodyBytes(request));
  throwProblems(findProblems(value));
  return (value as Static<typeof applyBody>).on_drift ?? 'refuse';
}

const applyPlanSchema = {
  operationId: 'applyPlan',
  summary: 'Apply a plan',
  description:
    'Queues a completed plan to be loaded: the same job, with the same file and mapping. Its counts start anew; its plan stays. One that failed because of drift can be applied again.',
  tags: ['jobs'],
  params: jobParameters,
  headers: Type.Object(actionHeaders),
  body: {
    content: {
      'application/json': withExamples(applyBody, {
        refuse: { summary: 'Nothing may have changed', value: {} },
        proceed: { summary: 'Whatever has changed', value: { on_drift: 'proceed' } },
      }),
    },
  },
  response: {
    202: { description: 'It is queued.', content: { 'application/json': { schema: jobRecord.ref } } },
    ...jobRefusals(
      'invalid_json',
      'unsupported_media_type',
      'payload_too_large',
      'upload_too_slow',
      'job_not_appliable',
      'plan_already_applied',
      'job_expired',
      'idempotency_conflict',
    ),
  },
} satisfies FastifySchema;

export function applyPlanOfJob(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'import' }, schema: applyPlanSchema } as const;
  app.post('/v1/background_jobs/:job_id/apply', options, async (request, reply) => {
    const jobId = jobIdOf(request);
    const environment = environmentId(request);
    const onDrift = readOnDrift(request);
    await requireLoad(system, environment, jobId);
    await applyPlan(system, environment, jobId, onDrift, idempotencyKeyOf(request));
    const load = await requireLoad(system, environment, jobId);
    // What it was made by this request; a worker may have begun, and even ended.
    const queued = { ...load, status: 'queued', endedAt: null } as const;
    return reply
      .code(202)
      .send(renderLoad(queued, baseUrl(request, system.config.publicUrl)) satisfies JobRecord);
  });
}
