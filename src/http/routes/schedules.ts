import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { scheduleItem, scheduleList, scheduleRun } from '../../api/schedule.ts';
import { withExamples } from '../../api/schema.ts';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import { readInstant } from '../../domain/instant.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_BYTES, MAX_PAGE_SIZE } from '../../domain/limits.ts';
import { readRuns } from '../../postgres/stores/schedule-runs.ts';
import {
  readFileInForce,
  renderSchedules,
  renderWholeRun,
  requireSchedule,
} from '../../sources/schedules/inspect-schedules.ts';
import { askForRun, pauseSchedule } from '../../sources/schedules/start-schedules.ts';
import { compileSchema, ruled, throwProblems, worded } from '../../validation.ts';
import { limitParameter } from '../page.ts';
import { callerEnvironment, requireScope } from '../plugins/auth.ts';
import { bodyBytes, readJsonObject } from '../plugins/json-body.ts';
import { listQuery } from '../plugins/validation.ts';
import { jobRefusals, refusals } from '../schemas/answers.ts';
import { scheduleParameters } from '../schemas/schedule-record.ts';

const listSchedulesSchema = {
  operationId: 'listSchedules',
  summary: 'List schedules',
  description:
    'The schedules of the environment, as the file that SCHEDULES_FILE names for this server has them now, with what is due and the latest runs. Other parameters are refused.',
  tags: ['schedules'],
  querystring: listQuery({}),
  response: {
    200: { description: 'The schedules.', content: { 'application/json': { schema: scheduleList.ref } } },
    ...refusals('invalid_field'),
  },
} satisfies FastifySchema;

export function listSchedules(app: FastifyInstance, { reader, config }: System): void {
  const options = {
    config: { scope: 'read', answerBytes: MAX_PAGE_BYTES },
    schema: listSchedulesSchema,
  } as const;
  app.get('/v1/schedules', options, async (request, reply) => {
    const environment = callerEnvironment(request);
    const { schedules, problems } = await readFileInForce(config.schedulesFile, environment.name);
    const list: Static<typeof scheduleList.schema> = {
      is_configured: config.schedulesFile !== null,
      problems: [...problems],
      data: await renderSchedules(reader.db, environment, schedules, new Date()),
    };
    return reply.send(list);
  });
}

const query = listQuery({ limit: limitParameter(MAX_PAGE_SIZE, 'Runs, at most.') });

const listScheduleRunsSchema = {
  operationId: 'listScheduleRuns',
  summary: 'List the runs of a schedule',
  description:
    'The latest runs, latest due time first, with their jobs; also of a schedule that is no longer in the file. Other parameters are refused.',
  tags: ['schedules'],
  params: scheduleParameters,
  querystring: query,
  response: {
    200: {
      description: 'The runs.',
      content: { 'application/json': { schema: Type.Array(scheduleRun.ref) } },
    },
    ...jobRefusals(),
  },
} satisfies FastifySchema;

export function listScheduleRuns(app: FastifyInstance, { reader, config }: System): void {
  const options = {
    config: { scope: 'read', answerBytes: MAX_PAGE_BYTES },
    schema: listScheduleRunsSchema,
  } as const;
  app.get<{ Params: Static<typeof scheduleParameters>; Querystring: Static<typeof query> }>(
    '/v1/schedules/:schedule/runs',
    options,
    async (request, reply) => {
      const { environmentId, name: environment } = callerEnvironment(request);
      const { schedule: name } = request.params;
      const { limit = DEFAULT_PAGE_SIZE } = request.query;
      const runs = await readRuns(reader.db, { environmentId, name }, limit);
      if (runs.length === 0) {
        const { schedules } = await readFileInForce(config.schedulesFile, environment);
        if (!schedules.some((each) => each.name === name)) {
          throw inputError('not_found', 'there is no such schedule', `schedule: ${name}`);
        }
      }
      const rendered: Static<typeof scheduleRun.schema>[] = [];
      for (const run of runs) rendered.push(await renderWholeRun(reader.db, run));
      return reply.send(rendered);
    },
  );
}

const actions = {
  pause: {
    operationId: 'pauseSchedule',
    summary: 'Pause a schedule',
    description:
      'From now on nothing is due of it, and what would have been is not made up. Runs that were made before, and those that somebody asks for, are done. Pausing again changes nothing.',
  },
  resume: {
    operationId: 'resumeSchedule',
    summary: 'Let a schedule go on',
    description: 'It is due again from now on. Of one that is not paused nothing changes.',
  },
} as const;

const pauseScheduleSchema = (action: keyof typeof actions) =>
  ({
    ...actions[action],
    tags: ['schedules'],
    params: scheduleParameters,
    response: {
      200: { description: 'The schedule.', content: { 'application/json': { schema: scheduleItem.ref } } },
      ...jobRefusals(),
    },
  }) satisfies FastifySchema;

export function pauseScheduleRoute(
  app: FastifyInstance,
  { db, config, log }: System,
  action: keyof typeof actions,
): void {
  const options = { config: { scope: 'import' }, schema: pauseScheduleSchema(action) } as const;
  app.post<{ Params: Static<typeof scheduleParameters> }>(
    `/v1/schedules/:schedule/${action}`,
    options,
    async (request, reply) => {
      const environment = callerEnvironment(request);
      const schedule = await requireSchedule(config.schedulesFile, environment.name, request.params.schedule);
      const now = new Date();
      await pauseSchedule(db, environment.environmentId, schedule.name, action === 'pause', now);
      log.info({ schedule: schedule.name, request_id: request.id }, `schedule ${action}d`);
      const [item] = await renderSchedules(db, environment, [schedule], now);
      return reply.send(item satisfies Static<typeof scheduleItem.schema> | undefined);
    },
  );
}

const notAnInstant = 'due_at is an instant such as 2026-11-20T03:00:00Z, and not one to come';

const body = Type.Object(
  {
    due_at: Type.Optional(
      worded(
        ruled(
          Type.String({
            description: 'The due time that the run stands for; default: now.',
            examples: ['2026-11-20T02:00:00Z'],
          }),
          (text) => ((readInstant(text)?.ms ?? Number.POSITIVE_INFINITY) > Date.now() ? notAnInstant : null),
        ),
        notAnInstant,
      ),
    ),
  },
  { additionalProperties: false, description: 'Which run.' },
);

const findProblems = compileSchema(body);

const runScheduleSchema = {
  operationId: 'runSchedule',
  summary: 'Run a schedule',
  description:
    'Makes a run, whatever the clock says and also of a schedule that is paused; workers do it. With `due_at` it stands for that time: if the run of that time failed or was skipped, it is done again and loads nothing twice; one that went well, or is under way, is answered as it is. Needs the scope `import`, and `export` for an export.',
  tags: ['schedules'],
  params: scheduleParameters,
  body: {
    content: {
      'application/json': withExamples(body, {
        now: { summary: 'Now', value: {} },
        again: { summary: 'Again, for a due time', value: { due_at: '2026-11-20T02:00:00Z' } },
      }),
    },
  },
  response: {
    202: { description: 'The run.', content: { 'application/json': { schema: scheduleRun.ref } } },
    ...jobRefusals(
      'invalid_json',
      'missing_field',
      'upload_too_slow',
      'payload_too_large',
      'unsupported_media_type',
    ),
  },
} satisfies FastifySchema;

export function runSchedule(scope: FastifyInstance, { db, config }: System): void {
  const options = { config: { scope: 'import' }, schema: runScheduleSchema } as const;
  scope.post<{ Params: Static<typeof scheduleParameters> }>(
    '/v1/schedules/:schedule/runs',
    options,
    async (request, reply) => {
      const { environmentId, name: environment } = callerEnvironment(request);
      const wish = readJsonObject(bodyBytes(request));
      throwProblems(findProblems(wish));
      const { due_at } = wish as Static<typeof body>;
      const schedule = await requireSchedule(config.schedulesFile, environment, request.params.schedule);
      if (schedule.work.kind === 'export') requireScope(request, 'export');
      const now = new Date();
      // The database keeps microseconds and a Date does not: a time with more digits would not be found again.
      const dueAt = due_at === undefined ? now : new Date(readInstant(due_at)?.ms ?? now);
      await askForRun(db, environmentId, schedule, dueAt, now);
      const [run] = await readRuns(db, { environmentId, name: schedule.name, dueAt }, 1);
      if (run === undefined) throw inputError('not_found', 'the run is gone', `schedule: ${schedule.name}`);
      return reply.code(202).send(await renderWholeRun(db, run));
    },
  );
}
