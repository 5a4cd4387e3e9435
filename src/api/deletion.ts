import { type Static, Type } from 'typebox';
import { deletionOutcomes, deletionTypes } from '../domain/deletion.ts';
import { MAX_PREVIEWED_ROWS } from '../domain/limits.ts';
import { exampleJobUrl, failure, lastError, listItemFields, progress, queuePosition, typeOf } from './job.ts';
import { component, count, envelope, orNull } from './schema.ts';

export const deletionJobDetail = component(
  'DeletionJobDetail',
  Type.Object(
    {
      ...listItemFields,
      type: typeOf(deletionTypes),
      completed_rows: count('Ids done so far.'),
      progress,
      counts: Type.Object(
        {
          requested: count('Different ids that were given.'),
          deleted: count('Of these there was something, and it is gone.'),
          not_found: count('Of these there was nothing.'),
        },
        { additionalProperties: false, description: 'Ids. Once completed, requested = deleted + not_found.' },
      ),
      removed: Type.Object(
        {
          events: count('Events of the users; of companies, events from which the company was taken.'),
          rejects: count('Refused records that held one of the ids.'),
          files: count('Files kept of loads that were accepted before.'),
          exports: count('Exports whose files were removed (`purge_exports`).'),
        },
        { additionalProperties: false, description: 'What else went, so far.' },
      ),
      purge_exports: Type.Boolean({ description: 'Files of exports that may hold the ids are removed too.' }),
      outcomes: Type.Object(
        {
          links: Type.String({
            format: 'uri',
            description: 'Where the outcome of each id is.',
            examples: [`${exampleJobUrl}/outcomes`],
          }),
        },
        { additionalProperties: false, description: 'What became of each id.' },
      ),
      failure: orNull(failure),
      last_error: lastError,
      attempts: count('How often it was begun.'),
      queue_position: queuePosition,
    },
    { additionalProperties: false, description: 'A deletion, as background jobs are shown.' },
  ),
);
export type DeletionJobDetail = Static<typeof deletionJobDetail.schema>;

export const idOutcome = component(
  'IdOutcome',
  Type.Object(
    {
      id: Type.String({ description: 'As it was given; of a number, its digits.' }),
      outcome: Type.Enum([...deletionOutcomes], {
        type: 'string',
        description: '`not_found`: there was neither a profile nor anything that referred to it.',
      }),
      events: Type.Integer({
        minimum: 0,
        description: 'Events of the user that were removed, or from which the company was taken.',
      }),
      users: Type.Integer({ minimum: 0, description: 'Users that were taken out of the company.' }),
    },
    {
      additionalProperties: false,
      description: 'What became of an id.',
      examples: [{ id: 'u1', outcome: 'deleted', events: 3, users: 0 }],
    },
  ),
);
export type IdOutcome = Static<typeof idOutcome.schema>;

export const outcomePage = envelope('OutcomePage', idOutcome.ref, 'Outcomes, in the order of the request.', {
  total_count: Type.Integer({ minimum: 1, description: 'Ids of the deletion, on all pages.' }),
});
export type OutcomePage = Static<typeof outcomePage.schema>;

export const deletionPreview = component(
  'DeletionPreview',
  Type.Object(
    {
      requested: count('Ids that were given, each once.'),
      profiles: count('Profiles that would be removed.'),
      not_found: count('Ids of which there is nothing.'),
      events: count(
        `Of users: their events, which would be removed. Of companies: events that would no longer name them. ${MAX_PREVIEWED_ROWS} at most.`,
      ),
      users: count(
        `Of companies: users who would no longer belong to one, ${MAX_PREVIEWED_ROWS} at most; of users 0.`,
      ),
      is_complete: Type.Boolean({ description: 'No number has met its bound.' }),
      archived_until: orNull(
        Type.String({
          format: 'date-time',
          description:
            'Events of the environment before this may have been moved to archives: a deletion removes them there, and they are not counted here. Null: none have.',
          examples: [null],
        }),
      ),
    },
    {
      additionalProperties: false,
      description: 'What a deletion would meet, as things stand.',
      examples: [
        {
          requested: 2,
          profiles: 1,
          not_found: 1,
          events: 4120,
          users: 0,
          is_complete: true,
          archived_until: null,
        },
      ],
    },
  ),
);
export type DeletionPreview = Static<typeof deletionPreview.schema>;
