import { type Static, Type } from 'typebox';
import { MAX_COUNTED_AHEAD } from '../base/limits.ts';
import { deletionTypes } from '../domain/deletion.ts';
import { loadStatuses, loadTypes } from '../domain/load.ts';
import { originKinds } from '../domain/task.ts';
import {
  choice,
  count,
  defineRecord,
  object,
  orNull,
  reasonFields,
  text,
  time,
  url,
  uuid,
} from './schema.ts';

export const exampleJobId = '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01';

export const exampleJobUrl = `https://sluice.example.com/v1/background_jobs/${exampleJobId}`;

export const jobFields = {
  job_id: uuid('ID of the job: a version 7 UUID, so that IDs sort by time of acceptance.', exampleJobId),
  type: choice([...loadTypes, 'export', ...deletionTypes], 'Type of the job.'),
  status: choice(
    loadStatuses,
    'Status: queued → processing → completed, failed or cancelled. A load is held while its guard waits for a person. A job that refused some of its records is completed.',
    'completed',
  ),
  filename: text('For a load, the name of the file as sent; for other jobs, their subject.', 'users.csv'),
  file_size: count(
    'Size of the received file in bytes; for an export, the bytes written so far; for a deletion, 0.',
    85,
  ),
  total_rows: count(
    'Data records in the file; for an export, the rows written so far; for a deletion, the number of IDs.',
    4,
  ),
  start_time: time('When the job was accepted, in UTC with milliseconds.', '2026-11-20T11:58:59.562Z'),
  end_time: orNull(time('When the job ended. Null until then.', '2026-11-20T11:59:00.102Z')),
  links: url('Absolute URL of the job.', exampleJobUrl),
};

export const jobRecord = defineRecord('JobRecord', 'A background job.', jobFields);
export type JobRecord = Static<typeof jobRecord.schema>;

export const listItemFields = {
  ...jobFields,
  processing_since: orNull(
    time(
      'When the current or last work began. For an applied plan, this is the start of loading, not of planning. Null while the job waits.',
      '2026-11-20T11:58:59.702Z',
    ),
  ),
  elapsed_time: count('Whole seconds from start to end, or from start to now.'),
};

export const failure = Type.Object(
  { ...reasonFields, error_code: text('Error code: stable, for programs.', 'too_many_rejects') },
  { additionalProperties: false, description: 'Why the job failed. Null unless it did.', examples: [null] },
);

export const queuePosition = orNull(
  count(
    `Number of unfinished jobs before this one, counting at most ${MAX_COUNTED_AHEAD} of each kind. 0 once it runs, null once it has ended.`,
  ),
);

export const lastError = orNull(
  Type.String({
    description: 'Error of the last attempt, while the job keeps trying. Null if nothing is wrong.',
    examples: [null, 'chunk 3: canceling statement due to statement timeout'],
  }),
);

export const progress = Type.Number({
  minimum: 0,
  maximum: 1,
  description: 'Share of the work that is done.',
  examples: [1],
});

export const origin = (description: string) =>
  orNull(
    object(description, {
      kind: choice(originKinds, 'Kind of origin.'),
      name: orNull(
        text('ID of the key or person, name of the schedule, or path in the inbox.', 'q8m2x0v7c1rt'),
      ),
    }),
  );

export const jobListItem = defineRecord('JobListItem', 'A background job, as lists show it.', {
  ...listItemFields,
  counts: Type.Unsafe<Readonly<Record<string, number>> | null>({
    type: ['object', 'null'],
    additionalProperties: count('Number.'),
    description: 'Counts of a load or a deletion, as the job itself shows them. Null for exports.',
    examples: [{ read: 4, inserted: 3, rejected: 1 }],
  }),
  origin: origin('What started the job. Null if it is not known.'),
});
export type JobListItem = Static<typeof jobListItem.schema>;
