import { type Static, Type } from 'typebox';
import { component } from './component.ts';
import { failure, lastError } from './job-detail.ts';
import { listItemFields, queuePosition } from './job-record.ts';
import { orNull } from './or-null.ts';

const count = (description: string) => Type.Integer({ minimum: 0, description });

export const deletionJobDetail = component(
  'DeletionJobDetail',
  Type.Object(
    {
      ...listItemFields,
      completed_rows: count('Ids settled so far.'),
      progress: Type.Number({ minimum: 0, maximum: 1 }),
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
      purge_exports: Type.Boolean(),
      outcomes: Type.Object(
        { links: Type.String({ format: 'uri', description: 'Where the outcome of each id is.' }) },
        { additionalProperties: false },
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
