import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import type { System } from '../../context.ts';
import { type Entity, idColumn } from '../../domain/entity.ts';
import {
  MAX_ACTIVITY_DAYS,
  MAX_ACTIVITY_NAMES,
  MAX_COUNTED_EVENTS,
  MAX_COUNTED_USERS,
} from '../../domain/limits.ts';
import { isTimeZone } from '../../domain/time-zone.ts';
import { countUsersOf, findArchivedUntil, isUserKnown, readActivity } from '../../postgres/stores/events.ts';
import { readProfile } from '../../postgres/stores/profiles.ts';
import { ruled, worded } from '../../validation.ts';
import { environmentId } from '../plugins/auth.ts';
import { listQuery } from '../plugins/validation.ts';
import { component, jobRefusals, orNull } from '../schemas/answers.ts';
import { companyParameters, noSuchProfile, userParameters } from './show-profile.ts';

const instant = (description: string) =>
  orNull(Type.String({ format: 'date-time', description, examples: ['2026-11-20T12:34:56.123456Z'] }));
const count = Type.Integer({ minimum: 0, description: 'How many.' });
const closed = { additionalProperties: false };
const notATimeZone = 'time_zone is a name such as Europe/Berlin';

export const activity = component(
  'Activity',
  Type.Object(
    {
      events: Type.Integer({
        minimum: 0,
        description: `Events that are stored of it: the latest ${MAX_COUNTED_EVENTS} at most.`,
      }),
      is_complete: Type.Boolean({ description: 'There are no more than these.' }),
      first_event_at: instant('When the first of them happened; null: there is none.'),
      last_event_at: instant('When the last of them happened.'),
      days: Type.Array(
        Type.Object({ day: Type.String({ format: 'date', description: 'The day.' }), events: count }, closed),
        { description: 'Of the days asked for those on which something happened, the oldest first.' },
      ),
      event_names: Type.Array(
        Type.Object(
          {
            event_name: Type.String({ description: 'What happened.' }),
            events: count,
            last_at: Type.String({ format: 'date-time', description: 'When it happened last.' }),
          },
          closed,
        ),
        { description: `The most frequent first, ${MAX_ACTIVITY_NAMES} at most.` },
      ),
      users: orNull(
        Type.Integer({
          minimum: 0,
          description: `Of a company: users who belong to it now, ${MAX_COUNTED_USERS} at most; of a user null.`,
          examples: [null],
        }),
      ),
      archived_until: instant(
        'Events of the environment before this may have been moved to archives, which are not counted; null: none have.',
      ),
    },
    {
      ...closed,
      description: 'What a user or company did, summed up.',
      examples: [
        {
          events: 42,
          is_complete: true,
          first_event_at: '2026-11-01T08:00:00.000000Z',
          last_event_at: '2026-11-20T12:34:56.123456Z',
          days: [{ day: '2026-11-20', events: 3 }],
          event_names: [{ event_name: 'report_shared', events: 42, last_at: '2026-11-20T12:34:56.123456Z' }],
          users: null,
          archived_until: null,
        },
      ],
    },
  ),
);

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
