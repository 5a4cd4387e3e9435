import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { scheduleRun } from '../../api/schedule.ts';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_BYTES, MAX_PAGE_SIZE } from '../../domain/limits.ts';
import { readRuns } from '../../postgres/stores/schedule-run-items.ts';
import { readFileInForce, renderWholeRun } from '../../sources/schedules/inspect-schedules.ts';
import { limitParameter } from '../page.ts';
import { callerEnvironment } from '../plugins/auth.ts';
import { listQuery } from '../plugins/validation.ts';
import { jobRefusals } from '../schemas/answers.ts';
import { scheduleParameters } from '../schemas/schedule-record.ts';

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
