import type { FastifyInstance, FastifySchema } from 'fastify';
import type { Static } from 'typebox';
import { scheduleItem } from '../../api/schedule.ts';
import type { System } from '../../context.ts';
import { renderSchedules, requireSchedule } from '../../sources/schedules/inspect-schedules.ts';
import { pauseSchedule } from '../../sources/schedules/start-schedules.ts';
import { callerEnvironment } from '../plugins/auth.ts';
import { jobRefusals } from '../schemas/answers.ts';
import { scheduleParameters } from '../schemas/schedule-record.ts';

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
