import { Type } from 'typebox';
import { scheduleItem, scheduleList, scheduleRun } from '../../api/schedule.ts';
import { object } from '../../api/schema.ts';
import { inputError } from '../../domain/errors.ts';
import { readInstant } from '../../domain/instant.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE } from '../../domain/limits.ts';
import { readRuns } from '../../postgres/stores/schedule-runs.ts';
import {
  readFileInForce,
  renderSchedules,
  renderWholeRun,
  requireSchedule,
} from '../../sources/schedules/inspect-schedules.ts';
import { askForRun, pauseSchedule } from '../../sources/schedules/start-schedules.ts';
import { limitParameter, pageBytes } from '../page.ts';
import { checked, dateOf, pathParameter } from '../parameters.ts';
import { callerEnvironment, requireScope } from '../plugins/auth.ts';
import { listQuery } from '../plugins/validation.ts';
import { type Route, route } from '../route.ts';

const params = pathParameter(
  'schedule',
  Type.String({
    pattern: '^[a-z0-9][a-z0-9_-]{0,62}$',
    description: 'Name of the schedule in the file.',
    examples: ['nightly-users'],
  }),
  'there is no such schedule',
);

const list = route({
  at: 'GET /v1/schedules',
  operationId: 'listSchedules',
  summary: 'List schedules',
  description:
    'Lists the schedules of the environment, as the file named by SCHEDULES_FILE has them now, with due times and latest runs. Unknown parameters are refused.',
  access: 'read',
  config: pageBytes,
  query: listQuery({}),
  answer: { description: 'The schedules.', schema: scheduleList.ref },
  handle: async ({
    system: {
      reader,
      config: { schedulesFile },
    },
    request,
  }) => {
    const environment = callerEnvironment(request);
    const { schedules, problems } = await readFileInForce(schedulesFile, environment.name);
    return {
      is_configured: schedulesFile !== null,
      problems,
      data: await renderSchedules(reader.db, environment, schedules, new Date()),
    };
  },
});

const listRuns = route({
  at: 'GET /v1/schedules/:schedule/runs',
  operationId: 'listScheduleRuns',
  summary: 'List the runs of a schedule',
  description:
    'Lists the latest runs, latest due time first, with their jobs. Runs of a schedule that is no longer in the file are found too. Unknown parameters are refused.',
  access: 'read',
  config: pageBytes,
  params,
  query: listQuery({ limit: limitParameter(MAX_PAGE_SIZE, 'Maximum number of runs.') }),
  answer: { description: 'The runs.', schema: Type.Array(scheduleRun.ref) },
  handle: async ({ system: { reader, config }, request, params: { schedule: name }, query, environment }) => {
    const which = { environmentId: environment, name };
    const runs = await readRuns(reader.db, which, query.limit ?? DEFAULT_PAGE_SIZE);
    if (runs.length === 0) {
      const { schedules } = await readFileInForce(config.schedulesFile, callerEnvironment(request).name);
      if (!schedules.some((each) => each.name === name)) {
        throw inputError('not_found', 'there is no such schedule', `schedule: ${name}`);
      }
    }
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
    answer: { description: 'The schedule.', schema: scheduleItem.ref },
    handle: async ({ system: { db, config, log }, request, reply, params: { schedule: name } }) => {
      const environment = callerEnvironment(request);
      const schedule = await requireSchedule(config.schedulesFile, environment.name, name);
      const now = new Date();
      await pauseSchedule(db, environment.environmentId, schedule.name, action === 'pause', now);
      log.info({ schedule: schedule.name, request_id: request.id }, `schedule ${action}d`);
      const [item] = await renderSchedules(db, environment, [schedule], now);
      return item ?? reply.send();
    },
  });

const dueAtField = Type.Optional(
  checked(
    Type.String({ description: 'Due time of the run. Default: now.', examples: ['2026-11-20T02:00:00Z'] }),
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
    schema: object({ due_at: dueAtField }, 'The run.'),
    examples: {
      now: { summary: 'Now', value: {} },
      again: { summary: 'Again, for a due time', value: { due_at: '2026-11-20T02:00:00Z' } },
    },
  },
  answer: { status: 202, description: 'The run.', schema: scheduleRun.ref },
  handle: async ({ system: { db, config }, request, params, environment, body }) => {
    const { name } = callerEnvironment(request);
    const schedule = await requireSchedule(config.schedulesFile, name, params.schedule);
    if (schedule.work.kind === 'export') requireScope(request, 'export');
    const now = new Date();
    // The database keeps microseconds and a Date does not: a time with more digits would not be found again.
    const dueAt = dateOf(body.due_at) ?? now;
    await askForRun(db, environment, schedule, dueAt, now);
    const [run] = await readRuns(db, { environmentId: environment, name: schedule.name, dueAt }, 1);
    if (run === undefined) throw inputError('not_found', 'the run is gone', `schedule: ${schedule.name}`);
    return renderWholeRun(db, run);
  },
});

export const scheduleRoutes: readonly Route[] = [list, listRuns, pause('pause'), pause('resume'), run];
