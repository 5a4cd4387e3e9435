import { callerOrigin } from '../../http/caller.ts';
import { jobRecord } from '../../http/job.ts';
import { rowsFile } from '../../http/job-rows.ts';
import { sendJson } from '../../http/page.ts';
import { idempotencyKeyOf, jobAction, jobParameters, optionalChoice } from '../../http/parameters.ts';
import { lenientQuery } from '../../http/plugins/validation.ts';
import { type Route, route } from '../../http/route.ts';
import { exampleText } from '../../http/schema.ts';
import { applyBody, plan } from '../api.ts';
import { requireLoad } from '../read-store.ts';
import { planJson } from '../render-load.ts';
import { applyPlan, releaseLoad } from '../retry.ts';
import { renderQueued } from '../upload/receive-upload.ts';
import { exportPlan, planFormats, requirePlannedRows, showPlan } from './plans.ts';

const query = lenientQuery({
  format: optionalChoice(
    ['json', ...planFormats],
    'format must be json, csv or ndjson',
    '`json` returns the summary; the others return all rows as a file.',
    'json',
  ),
});

const csvExample = `entity,id,outcome,property,before,after
users,u1,changed,plan,free,pro
users,u2,new,company_id,,acme
`;

const ndjsonExample =
  '{"entity" : "users", "id" : "u1", "outcome" : "changed", "before" : {"plan": "free"}, "after" : {"plan": "pro"}, "company_before" : null, "company_after" : null}\n';

const show = route({
  at: 'GET /v1/background_jobs/:job_id/plan',
  operationId: 'showPlan',
  summary: 'Show the plan of a load',
  description:
    'Returns what a load with `plan=true`, or with a guard, would do, once all of its records have been read. `format` selects the summary or all rows: CSV has one line for each value that differs, NDJSON each profile before and after.',
  access: 'read',
  params: jobParameters,
  query,
  answer: {
    description: 'The plan. `Content-Disposition` comes with files.',
    headers: ['Content-Disposition'],
    content: {
      'application/json': { schema: plan.ref },
      'text/csv': exampleText('One line for each value.', 'plan', 'Two profiles', csvExample),
      'application/x-ndjson': exampleText('One line for each profile.', 'plan', 'One profile', ndjsonExample),
    },
  },
  refuses: ['job_expired'],
  prepare: (system) =>
    rowsFile({
      name: 'plan',
      requireJob: (environment, job) => requirePlannedRows(system.reader, environment, job),
      export: (_environment, job, format) => exportPlan(system, job, format),
    }),
  handle: async ({ prepared: sendFile, query: { format = 'json' }, ...call }) => {
    if (format !== 'json') return sendFile({ ...call, query: {} }, format);
    const shown = await showPlan(call.system.reader, call.environment, call.params.job_id);
    return sendJson(call.reply, planJson(shown, call.base()));
  },
});

const apply = route({
  at: 'POST /v1/background_jobs/:job_id/apply',
  operationId: 'applyPlan',
  summary: 'Load a job that waits',
  description:
    'Queues a completed plan to be loaded: the same job, with the same file and mapping. Its counts start again from zero. Its plan stays. A plan that failed because of drift can be applied again. A load that its guard holds is queued too: its file is loaded although it differs from what was expected.',
  ...jobAction,
  json: {
    schema: applyBody,
    examples: {
      refuse: { summary: 'Only if nothing has changed', value: {} },
      proceed: { summary: 'Whatever has changed', value: { on_drift: 'proceed' } },
    },
  },
  answer: { status: 202, description: 'The job is queued.', schema: jobRecord.ref },
  refuses: ['job_not_appliable', 'job_not_held', 'plan_already_applied', 'job_expired'],
  handle: async ({ system, request, params, environment, base, body }) => {
    const jobId = params.job_id;
    const { held, plan } = await requireLoad(system, environment, jobId);
    const key = idempotencyKeyOf(request);
    if (held !== null && (plan === null || held.decidedAt === null))
      await releaseLoad(system, environment, jobId, callerOrigin(request), key);
    else await applyPlan(system, environment, jobId, body.on_drift ?? 'refuse', key);
    return renderQueued({ system, environment, base }, jobId);
  },
});

export const planRoutes: readonly Route[] = [show, apply];
