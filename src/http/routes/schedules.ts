import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { object, text, withExamples } from '../../api/schema.ts';
import { scheduleItem, scheduleList, scheduleRun } from '../../api/source.ts';
import { inputError } from '../../domain/errors.ts';
import { readInstant } from '../../domain/instant.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE } from '../../domain/limits.ts';
import type { Database } from '../../postgres/database.ts';
import { readRuns } from '../../postgres/stores/schedule-runs.ts';
import {
  readInForce,
  renderSchedules,
  renderWholeRun,
  requireSchedule,
} from '../../sources/schedules/inspect-schedules.ts';
import {
  keepSchedule,
  noSchedule,
  readMadeSchedule,
  removeSchedule,
} from '../../sources/schedules/made-schedules.ts';
import { type Schedule, scheduleDefinition } from '../../sources/schedules/schedules-schema.ts';
import { askForRun, pauseSchedule } from '../../sources/schedules/start-schedules.ts';
import { limitParameter, pageBytes } from '../page.ts';
import { checked, dateOf, pathParameter } from '../parameters.ts';
import { callerEnvironment, requireScope } from '../plugins/auth.ts';
import { bodyBytes, readJsonObject } from '../plugins/json-body.ts';
import { lenientQuery } from '../plugins/validation.ts';
import { type Call, type Route, route } from '../route.ts';

const params = pathParameter(
  'schedule',
  Type.String({
    pattern: '^[a-z0-9][a-z0-9_-]{0,62}$',
    description: 'Name of the schedule.',
    examples: ['nightly-users'],
  }),
  'there is no such schedule',
);

const list = route({
  at: 'GET /v1/schedules',
  operationId: 'listSchedules',
  summary: 'List schedules',
  description:
    'Lists the schedules of the environment with due times and latest runs: first those of the file named by SCHEDULES_FILE, as it is now, then those of the API, sorted by name.',
  access: 'read',
  config: pageBytes,
  answer: { description: 'The schedules.', schema: scheduleList.ref },
  handle: async ({ system: { reader, config }, request }) => {
    const environment = callerEnvironment(request);
    const { schedules, problems } = await readInForce(reader.db, config.schedulesFile, environment);
    return { problems, data: await renderSchedules(reader.db, environment, schedules, new Date()) };
  },
});

const answer = { description: 'The schedule.', schema: scheduleItem.ref };

/** Finds a schedule of the caller's environment. @throws InputError `not_found` */
function find({ system: { db, config }, request }: Call, name: string): Promise<Schedule> {
  return requireSchedule(db, config.schedulesFile, callerEnvironment(request), name);
}

async function renderOne(db: Database, request: FastifyRequest, schedule: Schedule) {
  const [item] = await renderSchedules(db, callerEnvironment(request), [schedule], new Date());
  if (item === undefined) throw noSchedule(schedule.name);
  return item;
}

function requireExport(request: FastifyRequest, { export: exported }: Schedule): void {
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
  handle: async (call) =>
    renderOne(call.system.reader.db, call.request, await find(call, call.params.schedule)),
});

const content = {
  'application/json': withExamples(scheduleDefinition, {
    nightly: {
      summary: 'A file on a web server, every night',
      value: {
        name: 'partner-accounts',
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
      summary: 'An export of what has changed, every hour',
      value: {
        name: 'warehouse',
        cron: '10 * * * *',
        export: { range: 'since_last_success', format: 'parquet' },
      },
    },
  }),
};

const asInFile =
  'It is written as in the file, without `environment`; secrets are variables that SCHEDULES_VARIABLES grants the environment, and files and `to_dir` lie below the folder of the environment. Requires the scope `import`, for an export also `export`.';

/** Reads and keeps the schedule of the body; `name`: in place of the one of this name. */
async function keep(call: Call, name: string | null) {
  const { system, request } = call;
  const environment = callerEnvironment(request);
  const given = readJsonObject(bodyBytes(request));
  if (name !== null && given['name'] !== name) {
    throw inputError('invalid_field', 'name must be the one of the path: a schedule keeps its name', 'name');
  }
  const schedule = readMadeSchedule(given, environment.name, system.config);
  requireExport(request, schedule);
  if (name !== null) requireExport(request, await find(call, name));
  await keepSchedule(system, environment, schedule, name === null ? 'new' : 'known');
  const fields = { schedule: schedule.name, request_id: request.id };
  system.log.info(fields, name === null ? 'schedule created' : 'schedule changed');
  return renderOne(system.db, request, { ...schedule, isMade: true });
}

const create = route({
  at: 'POST /v1/schedules',
  operationId: 'createSchedule',
  summary: 'Create a schedule',
  description: `Creates a schedule. ${asInFile} A name that the file has belongs to the file.`,
  access: 'import',
  bodyKind: 'json',
  content,
  answer: { ...answer, status: 201 },
  refuses: ['definition_locked'],
  handle: (call) => keep(call, null),
});

const replace = route({
  at: 'PUT /v1/schedules/:schedule',
  operationId: 'replaceSchedule',
  summary: 'Change a schedule',
  description: `Replaces a schedule of the API, from now on: due times that have passed are not made up, and runs that exist already stay as they are. ${asInFile}`,
  access: 'import',
  bodyKind: 'json',
  params,
  content,
  answer,
  refuses: ['definition_locked'],
  handle: (call) => keep(call, call.params.schedule),
});

const remove = route({
  at: 'DELETE /v1/schedules/:schedule',
  operationId: 'deleteSchedule',
  summary: 'Delete a schedule',
  description:
    'Deletes a schedule of the API with its history. A run that has not ended goes on, and keeps the history. The jobs stay.',
  access: 'import',
  params,
  answer: { status: 204, description: 'The schedule is deleted.' },
  refuses: ['definition_locked'],
  handle: async (call) => {
    const {
      system,
      request,
      reply,
      params: { schedule: name },
    } = call;
    requireExport(request, await find(call, name));
    await removeSchedule(system, callerEnvironment(request), name);
    system.log.info({ schedule: name, request_id: request.id }, 'schedule deleted');
    return reply.send();
  },
});

const listRuns = route({
  at: 'GET /v1/schedules/:schedule/runs',
  operationId: 'listScheduleRuns',
  summary: 'List the runs of a schedule',
  description:
    'Lists the latest runs, latest due time first, with their jobs. Runs of a schedule that is no longer in the file are found too.',
  access: 'read',
  config: pageBytes,
  params,
  query: lenientQuery({ limit: limitParameter(MAX_PAGE_SIZE, 'Maximum number of runs.') }),
  answer: { description: 'The runs.', schema: Type.Array(scheduleRun.ref) },
  handle: async (call) => {
    const {
      system: { reader },
      params: { schedule: name },
      query,
      environment,
    } = call;
    const which = { environmentId: environment, name };
    const runs = await readRuns(reader.db, which, query.limit ?? DEFAULT_PAGE_SIZE);
    if (runs.length === 0) await find(call, name);
    const rendered: Awaited<ReturnType<typeof renderWholeRun>>[] = [];
    for (const run of runs) rendered.push(await renderWholeRun(reader.db, run));
    return rendered;
  },
});

const actions = {
  pause: {
    operationId: 'pauseSchedule',
    summary: 'Pause a schedule',
    description:
      'Pauses the schedule. Runs that are missed while it is paused are not made up. Runs that exist already, and runs that a person requests, still happen. Pausing a paused schedule changes nothing.',
  },
  resume: {
    operationId: 'resumeSchedule',
    summary: 'Resume a schedule',
    description:
      'Resumes a paused schedule from now on. Resuming a schedule that is not paused changes nothing.',
  },
} as const;

const pause = (action: keyof typeof actions): Route =>
  route({
    at: `POST /v1/schedules/:schedule/${action}`,
    ...actions[action],
    access: 'import',
    params,
    answer,
    handle: async (call) => {
      const {
        system: { db, log },
        request,
        environment,
      } = call;
      const schedule = await find(call, call.params.schedule);
      await pauseSchedule(db, environment, schedule.name, action === 'pause', new Date());
      log.info({ schedule: schedule.name, request_id: request.id }, `schedule ${action}d`);
      return renderOne(db, request, schedule);
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
  handle: async (call) => {
    const {
      system: { db },
      request,
      params,
      environment,
      body,
    } = call;
    const schedule = await find(call, params.schedule);
    requireExport(request, schedule);
    const now = new Date();
    // The database keeps microseconds and a Date does not: a time with more digits would not be found again.
    const dueAt = dateOf(body.due_at) ?? now;
    await askForRun(db, environment, schedule, dueAt, now);
    const [run] = await readRuns(db, { environmentId: environment, name: schedule.name, dueAt }, 1);
    if (run === undefined) throw noSchedule(schedule.name);
    return renderWholeRun(db, run);
  },
});

export const scheduleRoutes: readonly Route[] = [
  ...[list, create, show, replace, remove],
  ...[listRuns, pause('pause'), pause('resume'), run],
];
