import type { Static } from 'typebox';
import { MAX_PREVIEWED_ROWS } from '../base/limits.ts';
import { deletionOutcomes, deletionTypes } from '../domain/deletion.ts';
import { exampleJobUrl, lastError, listItemFields, progress, queuePosition } from '../http/job.ts';
import { deletionCounts, runFields } from '../http/run.ts';
import {
  choice,
  count,
  defineRecord,
  envelope,
  flag,
  object,
  ordinal,
  orNull,
  text,
  time,
  url,
} from '../http/schema.ts';

export const deletionJobDetail = defineRecord('DeletionJobDetail', 'A deletion, shown as a background job.', {
  ...runFields,
  ...listItemFields,
  type: choice(deletionTypes, 'Type of the job.'),
  completed_rows: count('Number of IDs done so far.'),
  progress,
  counts: deletionCounts,
  removed: object('Other data removed so far.', {
    events: count('Events of the users; for companies, events that no longer name the company.'),
    rejects: count('Refused records that held one of the IDs.'),
    files: count('Stored files of loads that were accepted earlier.'),
    exports: count('Exports whose files were removed (`purge_exports`).'),
  }),
  purge_exports: flag('True if files of exports that may hold the IDs are removed too.'),
  outcomes: object('The outcome of each ID.', {
    links: url('URL of the outcomes.', `${exampleJobUrl}/outcomes`),
  }),
  last_error: lastError,
  attempts: count('Number of attempts begun.'),
  queue_position: queuePosition,
});
export type DeletionJobDetail = Static<typeof deletionJobDetail.schema>;

const idOutcome = defineRecord('IdOutcome', 'The outcome of one ID.', {
  id: text('The ID as given. A number is shown as its digits.', 'u1'),
  outcome: choice(
    deletionOutcomes,
    'Outcome. `not_found`: no profile had the ID and nothing referred to it.',
    'deleted',
  ),
  events: count('Events of the user that were removed, or events that no longer name the company.'),
  users: count('Users that were taken out of the company.'),
});

export const outcomePage = envelope('OutcomePage', idOutcome.ref, 'Outcomes, in the order of the request.', {
  total_count: ordinal('Number of IDs in the deletion, on all pages.'),
});

export const deletionPreview = defineRecord(
  'DeletionPreview',
  'Data that a deletion would remove if it ran now.',
  {
    requested: count('Number of distinct IDs in the request.'),
    profiles: count('Profiles that would be removed.'),
    not_found: count('IDs that have no data.'),
    events: count(
      `For users, the events that would be removed; for companies, the events that would no longer name them. At most ${MAX_PREVIEWED_ROWS}.`,
    ),
    users: count(
      `For companies, the users who would lose their company, at most ${MAX_PREVIEWED_ROWS}; for users, 0.`,
    ),
    is_complete: flag('False if a number reached its maximum and the true one may be larger.'),
    archived_until: orNull(
      time(
        'Events before this time may have moved to the lake. A deletion removes them there too, but they are not counted here. Null if none have moved.',
      ),
      null,
    ),
  },
);
export type DeletionPreview = Static<typeof deletionPreview.schema>;
