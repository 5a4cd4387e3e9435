import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { activity } from '../../api/event.ts';
import type { System } from '../../context.ts';
import { type Entity, idColumn } from '../../domain/entity.ts';
import { MAX_ACTIVITY_DAYS } from '../../domain/limits.ts';
import { isTimeZone } from '../../domain/time-zone.ts';
import { countUsersOf, findArchivedUntil, isUserKnown, readActivity } from '../../postgres/stores/events.ts';
import { readProfile } from '../../postgres/stores/profiles.ts';
import { ruled, worded } from '../../validation.ts';
import { environmentId } from '../plugins/auth.ts';
import { listQuery } from '../plugins/validation.ts';
import { jobRefusals } from '../schemas/answers.ts';
import { companyParameters, noSuchProfile, userParameters } from './show-profile.ts';

const notATimeZone = 'time_zone is a name such as Europe/Berlin';

const query = listQuery({
  days: Type.Optional(
    worded(
      Type.Integer({
        minimum: 1,
        maximum: MAX_ACTIVITY_DAYS,
        default: 30,
        description: 'Days up to today whose events are counted by day.',
      }),
      `days is a whole number from 1 to ${MAX_ACTIVITY_DAYS}`,
    ),
  ),
  time_zone: Type.Optional(
    worded(
      ruled(
        Type.String({
          description: 'Whose days they are: an IANA name.',
          default: 'UTC',
          examples: ['Europe/Berlin'],
        }),
        (text) => (isTimeZone(text) ? null : notATimeZone),
      ),
      notATimeZone,
    ),
  ),
});

const kinds = {
  users: { one: 'user', operationId: 'showUserActivity', params: userParameters },
  companies: { one: 'company', operationId: 'showCompanyActivity', params: companyParameters },
} as const satisfies Record<Entity, object>;

const showActivitySchema = (entity: Entity) => {
  const { one, operationId, params } = kinds[entity];
  return {
    operationId,
    summary: `Sum up what a ${one} did`,
    description: `The events that are stored of the ${one}, by day and by name. Other parameters are refused.`,
    tags: ['reading'],
    params,
    querystring: query,
    response: {
      200: { description: 'The sums.', content: { 'application/json': { schema: activity.ref } } },
      ...jobRefusals(),
    },
  } satisfies FastifySchema;
};

export function showActivity(app: FastifyInstance, { reader }: System, entity: Entity): void {
  const options = { config: { scope: 'read' }, schema: showActivitySchema(entity) } as const;
  const name = idColumn[entity];
  app.get<{
    Params: Static<typeof userParameters> & Static<typeof companyParameters>;
    Querystring: Static<typeof query>;
  }>(`/v1/${entity}/:${name}/activity`, options, async (request, reply) => {
    const id = request.params[name];
    const environment = environmentId(request);
    const { days = 30, time_zone: timeZone = 'UTC' } = request.query;
    if (!(await isKnown(reader, entity, environment, id))) throw noSuchProfile(entity, id);
    const [found, users, archived_until] = await Promise.all([
      reader.inTurn(() => readActivity(reader.db, entity, environment, { id, days, timeZone })),
      entity === 'companies' ? countUsersOf(reader.db, environment, id) : null,
      findArchivedUntil(reader.db, environment),
    ]);
    const answer: Static<typeof activity.schema> = {
      events: found.events,
      is_complete: found.isComplete,
      first_event_at: found.firstAt,
      last_event_at: found.lastAt,
      days: [...found.days],
      event_names: [...found.names],
      users,
      archived_until,
    };
    return reply.send(answer);
  });
}

/** Events may come before the profile does; of a company they do not. */
async function isKnown(
  reader: System['reader'],
  entity: Entity,
  environment: number,
  id: string,
): Promise<boolean> {
  if (entity === 'users') return isUserKnown(reader.db, environment, id);
  return (await readProfile(reader, entity, environment, id)) !== null;
}
