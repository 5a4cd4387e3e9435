import type { FastifyInstance, FastifySchema } from 'fastify';
import type { Static } from 'typebox';
import { scheduleList } from '../../api/schedule.ts';
import type { System } from '../../context.ts';
import { MAX_PAGE_BYTES } from '../../domain/limits.ts';
import { readFileInForce, renderSchedules } from '../../sources/schedules/inspect-schedules.ts';
import { callerEnvironment } from '../plugins/auth.ts';
import { listQuery } from '../plugins/validation.ts';
import { refusals } from '../schemas/answers.ts';

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
