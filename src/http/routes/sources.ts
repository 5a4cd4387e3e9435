import { Type } from 'typebox';
import { render } from '../../api/render.ts';
import { object } from '../../api/schema.ts';
import {
  type Inbox,
  inboxRecord,
  scheduleItem,
  scheduleList,
  scheduleRun,
  takenAgain,
} from '../../api/source.ts';
import { inputError, TransientError } from '../../domain/errors.ts';
import { readInstant } from '../../domain/instant.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, READ_TIMEOUT_MS } from '../../domain/limits.ts';
import { readRuns } from '../../postgres/stores/schedule-runs.ts';
import { placeOf } from '../../sources/inbox/folders.ts';
import { type InboxLook, type InboxStatus, inspectInbox, lookAt } from '../../sources/inbox/inspect-inbox.ts';
import { takeInAgain } from '../../sources/inbox/take-in.ts';
import {
  readFileInForce,
  renderSchedules,
  renderWholeRun,
  requireSchedule,
} from '../../sources/schedules/inspect-schedules.ts';
import { askForRun, pauseSchedule } from '../../sources/schedules/start-schedules.ts';
import { type Answer, createProbe, type ProbeOptions } from '../../telemetry/health.ts';
import { limitParameter, pageBytes } from '../page.ts';
import { checked, dateOf, idParameter, pathParameter } from '../parameters.ts';
import { callerEnvironment, requireScope } from '../plugins/auth.ts';
import { lenientQuery } from '../plugins/validation.ts';
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
    'Lists the schedules of the environment, as the file named by SCHEDULES_FILE has them now, with due times and latest runs.',
  access: 'read',
  config: pageBytes,
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
    'Lists the latest runs, latest due time first, with their jobs. Runs of a schedule that is no longer in the file are found too.',
  access: 'read',
  config: pageBytes,
  params,
  query: lenientQuery({ limit: limitParameter(MAX_PAGE_SIZE, 'Maximum number of runs.') }),
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
    if (schedule.export !== undefined) requireScope(request, 'export');
    const now = new Date();
    // The database keeps microseconds and a Date does not: a time with more digits would not be found again.
    const dueAt = dateOf(body.due_at) ?? now;
    await askForRun(db, environment, schedule, dueAt, now);
    const [run] = await readRuns(db, { environmentId: environment, name: schedule.name, dueAt }, 1);
    if (run === undefined) throw inputError('not_found', 'the run is gone', `schedule: ${schedule.name}`);
    return renderWholeRun(db, run);
  },
});

const nobodyWatches: Inbox = {
  is_watched: false,
  waiting: 0,
  files: [],
  taken: [],
  ignored: [],
  held: [],
  recent: [],
};

/**
 * A look costs a call for each file, on the few threads that all files need: at 100 000 files it takes seconds. So there is one look a
 * second at most, and looks take a tenth of the time.
 */
const looking: ProbeOptions = {
  deadlineMs: READ_TIMEOUT_MS,
  keepMs: (tookMs, failed) => (failed ? 0 : Math.max(1_000, 9 * tookMs)),
};

/** Looks at a folder once for all who ask meanwhile or soon after. */
function lookTogether(): (path: string) => Promise<InboxLook> {
  const probes = new Map<string, () => Promise<Answer<InboxLook>>>();
  return async (path) => {
    const probe = probes.get(path) ?? createProbe(() => lookAt(path), looking);
    probes.set(path, probe);
    const answer = await probe();
    if ('value' in answer) return answer.value;
    throw new TransientError('the folder cannot be looked at', { cause: answer.error });
  };
}

type Status = InboxStatus['environments'][number];

function renderTaken({ fileId, size, state, takenAt, jobId, ...file }: Status['taken'][number]) {
  const shown = state === 'concluded' ? 'loading' : state;
  return render({ fileId, name: placeOf(file), size: Number(size), state: shown, takenAt, jobId });
}

const show = route({
  at: 'GET /v1/inbox',
  operationId: 'showInbox',
  summary: 'Show the inbox',
  description:
    'Returns the folder of the environment below INBOX_DIR, as this server sees it: files that wait, files that are being loaded, files that are ignored, and the outcomes of the last files. The folder is read once a second, and less often if it holds many files.',
  access: 'read',
  config: pageBytes,
  query: lenientQuery({ limit: limitParameter(MAX_PAGE_SIZE, 'Maximum number of outcomes.') }),
  answer: { description: 'The inbox.', schema: inboxRecord.ref },
  prepare: lookTogether,
  handle: async ({ system, own: look, request, query: { limit = DEFAULT_PAGE_SIZE } }) => {
    const { inboxDir } = system.config;
    if (inboxDir === null) return nobodyWatches;
    const { name: environment } = callerEnvironment(request);
    const found = await inspectInbox(system.reader, inboxDir, { environment, limit, look });
    const status = found?.environments[0];
    if (found === null || status === undefined) return nobodyWatches;
    const { waiting, files, taken, ignored, held } = status;
    return {
      is_watched: true,
      waiting,
      files: files.map(render),
      taken: taken.map(renderTaken),
      ignored,
      held,
      recent: found.recent.map(({ environment: _, ...file }) => render(file)),
    };
  },
});

const takeAgain = route({
  at: 'POST /v1/inbox/:file_id/take_again',
  operationId: 'takeInAgain',
  summary: 'Take a failed file in again',
  description:
    'Moves the file from failed back to where it was dropped, so that workers take it in again, as its mapping.yaml says now. Its receipt stays. Returns 404 if the file is no longer in its place, or if another file of its name lies there.',
  access: 'import',
  params: idParameter('file_id', 'failed file'),
  answer: { status: 202, description: 'The file lies in the inbox again.', schema: takenAgain },
  handle: async ({ system, request, params: { file_id }, environment }) => {
    const { name } = await takeInAgain(system, system.config.inboxDir, environment, file_id);
    const fields = { file_id, file: name, request_id: request.id };
    system.log.info(fields, 'inbox: a failed file is taken again');
    return { file_id, name };
  },
});

export const sourceRoutes: readonly Route[] = [
  list,
  listRuns,
  pause('pause'),
  pause('resume'),
  run,
  show,
  takeAgain,
];
