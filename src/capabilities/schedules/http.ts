import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { inputError } from '../../base/errors.ts';
import { readInstant } from '../../base/instant.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, MAX_RECORD_BYTES } from '../../base/limits.ts';
import { type FileReading, throwFileProblems } from '../../base/operator-file/read.ts';
import { throwProblems } from '../../base/validation.ts';
import { callerEnvironment, requireScope } from '../../http/caller.ts';
import { limitParameter, pageBytes } from '../../http/page.ts';
import { checked, dateOf, pathParameter } from '../../http/parameters.ts';
import { bodyBytes, readJsonObject } from '../../http/plugins/json-body.ts';
import { lenientQuery } from '../../http/plugins/validation.ts';
import { type Call, type Route, route } from '../../http/route.ts';
import { flag, object, text, withExamples } from '../../http/schema.ts';
import type { Database } from '../../postgres/database.ts';
import { scheduleItem, scheduleList, scheduleRun } from './api.ts';
import { confinementOf } from './confinement.ts';
import { readSchedule } from './file.ts';
import {
  applySchedules,
  noSchedule,
  pauseSchedule,
  readSchedules,
  removeSchedule,
  requireSchedule,
} from './keep.ts';
import { renderScheduleRun, renderScheduleRuns, renderSchedules } from './render-run.ts';
import { readRuns } from './run-store.ts';
import { listSchedules } from './schedule-store.ts';
import { type JobOptions, publishedSchedule, type Schedule, type ScheduleDefinition } from './schema.ts';
import { askForRun } from './start.ts';

const params = pathParameter(
  'schedule',
  Type.String({
    pattern: '^[a-z0-9][a-z0-9_-]{0,62}$',
    description: 'Name of the schedule.',
    examples: ['nightly-users'],
  }),
  'There is no such schedule',
);

const list = route({
  at: 'GET /v1/schedules',
  operationId: 'listSchedules',
  summary: 'List schedules',
  description: 'Lists the schedules of the environment by name, with due times and latest runs.',
  access: 'read',
  config: pageBytes,
  answer: { description: 'The schedules.', schema: scheduleList.ref },
  handle: async ({ system: { reader }, environment }) => {
    const schedules = await readSchedules(reader.db, environment);
    return { data: await renderSchedules(reader.db, schedules, new Date()) };
  },
});

const answer = { description: 'The schedule.', schema: scheduleItem.ref };

async function renderOne(db: Database, schedule: Schedule) {
  const [item] = await renderSchedules(db, [schedule], new Date());
  if (item === undefined) throw noSchedule(schedule.definition.name);
  return item;
}

function requireExport(request: FastifyRequest, { export: exported }: ScheduleDefinition): void {
  if (exported !== undefined) requireScope(request, 'export');
}

const show = route({
  at: 'GET /v1/schedules/:schedule',
  operationId: 'showSchedule',
  summary: 'Show a schedule',
  description: 'Returns the schedule with due times and latest runs.',
  access: 'read',
  params,
  answer,
  handle: async ({ system: { reader }, environment, params: { schedule } }) =>
    renderOne(reader.db, await requireSchedule(reader.db, environment, schedule)),
});

const asFile = object('The schedule as YAML.', {
  file: Type.String({
    maxLength: MAX_RECORD_BYTES,
    description: 'A schedule of the file that `sluice schedules apply` takes, YAML or JSON.',
  }),
});

const content = (jobOptions: JobOptions) => ({
  'application/json': withExamples(
    Type.Union([publishedSchedule(jobOptions), asFile], {
      description: 'The schedule, or its text under `file`.',
    }),
    {
      nightly: {
        summary: 'A file on a web server, every night',
        value: {
          cron: '0 3 * * *',
          timezone: 'Europe/Berlin',
          load: {
            http: {
              url: 'https://partner.example.com/accounts.ndjson.gz',
              headers: { Authorization: `Bearer \${env:SCHEDULE_PARTNER_TOKEN}` },
            },
            entity: 'companies',
          },
        },
      },
      changes: {
        summary: 'An export of what has changed, every hour, as YAML',
        value: { file: 'cron: "10 * * * *"\nexport: { range: since_last_success, format: parquet }\n' },
      },
    },
  ),
});

/**
 * The member `file` may contain the definition as text.
 * @throws InputError that lists all problems
 */
async function readBody({ system, request }: Call, name: string): Promise<ScheduleDefinition> {
  const body = readJsonObject(bodyBytes(request));
  const { file } = body;
  const isText = typeof file === 'string' && Object.keys(body).length === 1;
  const confinement = await confinementOf(system.config, callerEnvironment(request).name);
  const bytes = Buffer.from(isText ? file : JSON.stringify(body));
  const reading: FileReading<ScheduleDefinition> = readSchedule(system, bytes, name, confinement);
  const problems = reading.problems.map(({ message, ...problem }) => ({
    ...problem,
    message: message.replace(/^the file /, 'The schedule '),
  }));
  if (isText) throwFileProblems('file', problems);
  throwProblems(problems.map(({ path, message }) => ({ code: 'invalid_field', message, details: path })));
  if (reading.value === null) throw inputError('invalid_field', 'The schedule cannot be read', 'file');
  return reading.value;
}

const put = (jobOptions: JobOptions) =>
  route({
    at: 'PUT /v1/schedules/:schedule',
    operationId: 'putSchedule',
    summary: 'Create or replace a schedule',
    description:
      'Stores the schedule, from now on: due times that have passed are not made up, and runs that exist already stay as they are. Secrets are variables of the workers that SCHEDULES_VARIABLES grants the environment. Requires the scope `import`, for an export also `export`.',
    access: 'import',
    bodyKind: 'json',
    params,
    content: content(jobOptions),
    answer,
    handle: async (call) => {
      const {
        system,
        request,
        environment,
        params: { schedule: name },
      } = call;
      const { db, log } = system;
      const definition = await readBody(call, name);
      requireExport(request, definition);
      const [existing] = await listSchedules(db, environment, name);
      if (existing !== undefined) requireExport(request, existing.definition as ScheduleDefinition);
      await applySchedules(system, environment, [definition], { prune: false, dryRun: false });
      log.info({ schedule: name, request_id: request.id }, 'schedule stored');
      return renderOne(db, await requireSchedule(db, environment, name));
    },
  });

const change = route({
  at: 'PATCH /v1/schedules/:schedule',
  operationId: 'pauseSchedule',
  summary: 'Pause or resume a schedule',
  description:
    'Pauses the schedule, or resumes it from now on. Runs that are missed while it is paused are not made up. Runs that exist already, and runs that a person requests, still happen.',
  access: 'import',
  params,
  json: {
    schema: object('The change.', { paused: flag('True to pause, false to resume.') }),
    examples: { pause: { summary: 'Pause', value: { paused: true } } },
  },
  answer,
  handle: async ({ system, request, environment, params: { schedule: name }, body }) => {
    const { db, log } = system;
    await pauseSchedule(system, environment, name, body.paused);
    log.info({ schedule: name, request_id: request.id, paused: body.paused }, 'schedule changed');
    return renderOne(db, await requireSchedule(db, environment, name));
  },
});

const remove = route({
  at: 'DELETE /v1/schedules/:schedule',
  operationId: 'deleteSchedule',
  summary: 'Delete a schedule',
  description:
    'Deletes the schedule with its history. A run that has not ended goes on, and keeps the history. The jobs stay.',
  access: 'import',
  params,
  answer: { status: 204, description: 'The schedule is deleted.' },
  handle: async ({ system, request, reply, environment, params: { schedule: name } }) => {
    const { db, log } = system;
    const { definition } = await requireSchedule(db, environment, name);
    requireExport(request, definition);
    await removeSchedule(system, environment, name);
    log.info({ schedule: name, request_id: request.id }, 'schedule deleted');
    return reply.send();
  },
});

const listRuns = route({
  at: 'GET /v1/schedules/:schedule/runs',
  operationId: 'listScheduleRuns',
  summary: 'List the runs of a schedule',
  description:
    'Lists the documents of the latest runs, latest due time first. Runs of a deleted schedule are found while one has not ended.',
  access: 'read',
  config: pageBytes,
  params,
  query: lenientQuery({ limit: limitParameter(MAX_PAGE_SIZE, 'Maximum number of runs.') }),
  answer: { description: 'The runs.', schema: Type.Array(scheduleRun.ref) },
  handle: async ({ system: { reader }, params: { schedule: name }, query, environment, base }) => {
    const which = { environmentId: environment, name };
    const runs = await readRuns(reader.db, which, query.limit ?? DEFAULT_PAGE_SIZE);
    if (runs.length === 0) await requireSchedule(reader.db, environment, name);
    return renderScheduleRuns(reader.db, runs, base());
  },
});

const dueAtField = Type.Optional(
  checked(
    text('Due time of the run. Default: now.', '2026-11-20T02:00:00Z'),
    (text) => (readInstant(text)?.ms ?? Number.POSITIVE_INFINITY) <= Date.now(),
    'due_at is an instant such as 2026-11-20T03:00:00Z, and not one to come',
  ),
);

const run = route({
  at: 'POST /v1/schedules/:schedule/runs',
  operationId: 'runSchedule',
  summary: 'Run a schedule',
  description:
    'Creates a run for the workers, whatever the clock says, even if the schedule is paused. With `due_at` the run has that due time. If the run of that time failed or was skipped, it is done again and loads nothing twice; if it succeeded or is under way, it is returned as it is. Requires the scope `import`, and `export` for an export.',
  access: 'import',
  params,
  json: {
    schema: object('The run.', { due_at: dueAtField }),
    examples: {
      now: { summary: 'Now', value: {} },
      again: { summary: 'Again, for a due time', value: { due_at: '2026-11-20T02:00:00Z' } },
    },
  },
  answer: { status: 202, description: 'The run.', schema: scheduleRun.ref },
  handle: async ({ system, request, params: { schedule: name }, environment, body, base }) => {
    const { db } = system;
    const { definition } = await requireSchedule(db, environment, name);
    requireExport(request, definition);
    // If a run were stored with microseconds, a Date could not find it again.
    const dueAt = dateOf(body.due_at) ?? new Date();
    await askForRun(system, environment, name, dueAt);
    const [run] = await readRuns(db, { environmentId: environment, name, dueAt }, 1);
    if (run === undefined) throw noSchedule(name);
    return renderScheduleRun(db, run, base());
  },
});

export const scheduleRoutes = (jobOptions: JobOptions): readonly Route[] => [
  list,
  show,
  put(jobOptions),
  change,
  remove,
  listRuns,
  run,
];
