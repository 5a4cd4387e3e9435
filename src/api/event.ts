import { type Static, Type } from 'typebox';
import { MAX_ACTIVITY_NAMES, MAX_COUNTED_EVENTS, MAX_COUNTED_USERS } from '../domain/limits.ts';
import { closed, component, envelope, orNull } from './schema.ts';

const exampleInstant = '2026-11-20T12:34:56.123456Z';

export const storedEvent = component(
  'StoredEvent',
  Type.Object(
    {
      event_id: Type.String({ description: 'The id that its sender gave it, else ours.' }),
      event_type: Type.String({ description: '`track`, or `page_view`.', examples: ['track'] }),
      event_name: Type.String({ description: 'What happened.', examples: ['report_shared'] }),
      user_id: Type.String({ description: 'Who did it.' }),
      company_id: orNull(Type.String({ description: 'The company it is stored with; null: none.' })),
      source: Type.String({ description: 'How it came in.', examples: ['backend-http'] }),
      inserted_at: Type.String({ format: 'date-time', description: 'When it happened.' }),
      metadata: Type.Object(
        {},
        { additionalProperties: true, description: 'Its properties, with every digit they are stored with.' },
      ),
    },
    {
      additionalProperties: false,
      description: 'An event as it is stored.',
      examples: [
        {
          event_id: '01a1f8d2fdea7c7da3a45f3b5d7e9c01',
          event_type: 'track',
          event_name: 'report_shared',
          user_id: 'u1',
          company_id: 'acme',
          source: 'backend-http',
          inserted_at: exampleInstant,
          metadata: { report: 'Q3', pages: 12 },
        },
      ],
    },
  ),
);
export type StoredEvent = Static<typeof storedEvent.schema>;

export const eventPageAnswer = envelope('EventPage', storedEvent.ref, 'Events, newest first.', {
  archived_until: orNull(
    Type.String({
      format: 'date-time',
      description:
        'Events of the environment before this may have been moved to archives, which exports read and this list does not; null: none have.',
    }),
  ),
});
export type EventPage = Static<typeof eventPageAnswer.schema>;

const instant = (description: string) =>
  orNull(Type.String({ format: 'date-time', description, examples: ['2026-11-20T12:34:56.123456Z'] }));

const count = Type.Integer({ minimum: 0, description: 'How many.' });

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
export type Activity = Static<typeof activity.schema>;
