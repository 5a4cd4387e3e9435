import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { scheduleRun } from '../../api/schedule.ts';
import { withExamples } from '../../api/schema.ts';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import { readInstant } from '../../domain/instant.ts';
import { readRuns } from '../../postgres/stores/schedule-run-items.ts';
import { renderWholeRun, requireSchedule } from '../../sources/schedules/inspect-schedules.ts';
import { askForRun } from '../../sources/schedules/start-schedules.ts';
import { compileSchema, ruled, throwProblems, worded } from '../../validation.ts';
import { callerEnvironment, requireScope } from '../plugins/auth.ts';
import { bodyBytes, readJsonObject } from '../plugins/json-body.ts';
import { jobRefusals } from '../schemas/answers.ts';
import { scheduleParameters } from '../schemas/schedule-record.ts';

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
