import { type Static, Type } from 'typebox';
import { deletionTypes } from '../../domain/deletion.ts';
import { MAX_COUNTED_AHEAD } from '../../domain/limits.ts';
import { loadStatuses, loadTypes } from '../../domain/load.ts';
import { component } from './component.ts';
import { orNull } from './or-null.ts';

const exampleId = '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01';

export const queuePosition = orNull(
  Type.Integer({
    minimum: 0,
    description: `Unfinished jobs before this one, counted up to ${MAX_COUNTED_AHEAD} of each kind; 0 once it runs, null once it ended.`,
  }),
);

export const jobFields = {
  job_id: Type.String({
    format: 'uuid',
    description: 'Version 7: ids sort by the time of acceptance.',
    examples: [exampleId],
  }),
  type: Type.Enum([...loadTypes, 'export', ...deletionTypes] as const, { type: 'string' }),
  status: Type.Enum([...loadStatuses], {
    type: 'string',
    description:
      'queued → processing → completed, failed or cancelled. A job some of whose records were refused is completed.',
  }),
  filename: Type.String({ examples: ['users.csv'] }),
  file_size: Type.Integer({
    minimum: 0,
    description: 'Bytes as received; of an export, written so far; of a deletion 0.',
    examples: [85],
  }),
  total_rows: Type.Integer({
    minimum: 0,
    description: 'Data records in the file; of an export, written so far; of a deletion, ids to delete.',
    examples: [4],
  }),
  start_time: Type.String({
    format: 'date-time',
    description: 'When the job was accepted. UTC, with milliseconds.',
    examples: ['2026-11-20T11:58:59.562Z'],
  }),
  end_time: orNull(
    Type.String({
      format: 'date-time',
      description: 'When the job ended; null until then.',
      examples: [null],
    }),
  ),
  links: Type.String({
    format: 'uri',
    description: 'Absolute URL of the job.',
    examples: [`https://sluice.example.com/v1/background_jobs/${exampleId}`],
  }),
};

export const jobRecord = component(
  'JobRecord',
  Type.Object(jobFields, { additionalProperties: false, description: 'A background job.' }),
);
export type JobRecord = Static<typeof jobRecord.schema>;

/** `POST /v1/imports` shows two of the numbers as strings. */
export const importRecord = component(
  'ImportRecord',
  Type.Object(
    {
      ...jobFields,
      file_size: Type.String({
        pattern: '^[0-9]+$',
        description: 'Bytes as received, as a string.',
        examples: ['116'],
      }),
      total_rows: Type.String({
        pattern: '^[1-9][0-9]*$',
        description: 'Data records in the file, as a string.',
        examples: ['4'],
      }),
    },
    { additionalProperties: false, description: 'The background job of an import.' },
  ),
);
export type ImportRecord = Static<typeof importRecord.schema>;

export const listItemFields = {
  ...jobFields,
  elapsed_time: Type.Integer({ minimum: 0, description: 'Whole seconds from start to end, or to now.' }),
};

export const jobListItem = component(
  'JobListItem',
  Type.Object(listItemFields, {
    additionalProperties: false,
    description: 'A background job as the list shows it.',
  }),
);
export type JobListItem = Static<typeof jobListItem.schema>;
