import type { FastifyInstance, FastifyRequest, FastifySchema } from 'fastify';
import pLimit from 'p-limit';
import { type Static, Type } from 'typebox';
import { jobRecord } from '../../api/job.ts';
import { applyBody, plan } from '../../api/plan.ts';
import { withExamples } from '../../api/schema.ts';
import type { System } from '../../context.ts';
import type { OnDrift } from '../../domain/load.ts';
import { applyPlan } from '../../load/apply-plan.ts';
import { exportPlan, type PlanFormat, planFormats, requirePlannedRows, showPlan } from '../../load/plans.ts';
import { planJson, renderLoad } from '../../load/render-load.ts';
import { requireLoad } from '../../postgres/stores/read-loads.ts';
import { compileSchema, throwProblems, worded } from '../../validation.ts';
import { piecesAtATime, sendFile } from '../job-rows.ts';
import { baseUrl, sendJson } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { bodyBytes, readJsonObject } from '../plugins/json-body.ts';
import { listQuery } from '../plugins/validation.ts';
import { actionHeaders, idempotencyKeyOf } from '../request-headers.ts';
import { jobRefusals, named } from '../schemas/answers.ts';
import { type JobRecord, jobIdOf, jobParameters } from '../schemas/job-record.ts';

const planQuery = listQuery({
  format: Type.Optional(
    worded(
      Type.Enum(['json', ...planFormats], {
        type: 'string',
        default: 'json',
        description: 'The summary as JSON, or all rows as a file.',
      }),
      'format must be json, csv or ndjson',
    ),
  ),
});

const csvExample = `entity,id,outcome,property,before,after
users,u1,changed,plan,free,pro
users,u2,new,company_id,,acme
`;

const ndjsonExample =
  '{"entity" : "users", "id" : "u1", "outcome" : "changed", "before" : {"plan": "free"}, "after" : {"plan": "pro"}, "company_before" : null, "company_after" : null}\n';

const showPlanSchema = {
  operationId: 'showPlan',
  summary: 'Show what a planned load would do',
  description:
    'Of a load with `plan=true`, or with a guard, once all of its records were looked at. By `format`: the summary, or all rows: as CSV a line for each value that differs, as NDJSON each profile as it is and as it would be.',
  tags: ['jobs'],
  params: jobParameters,
  querystring: planQuery,
  response: {
    200: {
      description: 'The plan. `Content-Disposition` comes with files.',
      headers: named('Content-Disposition'),
      content: {
        'application/json': { schema: plan.ref },
        'text/csv': withExamples(Type.String({ description: 'A line for each value.' }), {
          plan: { summary: 'Two profiles', value: csvExample },
        }),
        'application/x-ndjson': withExamples(Type.String({ description: 'A line for each profile.' }), {
          plan: { summary: 'One profile', value: ndjsonExample },
        }),
      },
    },
    ...jobRefusals('job_expired'),
  },
} satisfies FastifySchema;

/** The plan of a load, as a file too. */
export function showPlanOfJob(app: FastifyInstance, system: System): void {
  const inTurn = pLimit(piecesAtATime);
  const options = { config: { scope: 'read' }, schema: showPlanSchema } as const;
  app.get<{ Querystring: Static<typeof planQuery> }>(
    '/v1/background_jobs/:job_id/plan',
    options,
    async (request, reply) => {
      const jobId = jobIdOf(request);
      const { format = 'json' } = request.query;
      if (format === 'json') {
        const found = await showPlan(system.reader, environmentId(request), jobId);
        return sendJson(reply, planJson(found, baseUrl(request, system.config.publicUrl)));
      }
      const file = {
        name: 'plan',
        requireJob: (environment: number, job: string) => requirePlannedRows(system.reader, environment, job),
        export: (_environment: number, job: string, as: PlanFormat) => exportPlan(system, job, as),
      };
      return sendFile(file, request, {}, reply, jobId, format, inTurn);
    },
  );
}

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
