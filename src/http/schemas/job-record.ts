import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { deletionTypes } from '../../domain/deletion.ts';
import { loadStatuses, loadTypes } from '../../domain/load.ts';
import { ruled, worded } from '../../validation.ts';
import { component, orNull } from './answers.ts';

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const noSuchJob = 'there is no such job';

export const jobIdOptions = {
  format: 'uuid',
  description: 'Id of the job, as its record has it.',
  examples: ['01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01'],
} as const;

/** The path of everything that concerns one job. What cannot be a job id is no job either. */
export const jobParameters = Type.Object({
  job_id: worded(
    ruled(Type.String(jobIdOptions), (text) => (uuid.test(text) ? null : noSuchJob)),
    {
      says: (value) => ({
        code: 'not_found',
        message: noSuchJob,
        details: `job_id: ${String(value).slice(0, 100)}`,
      }),
    },
  ),
});

/** The id in the path, which the schema has let through, as we write it. */
export function jobIdOf(request: FastifyRequest): string {
  return (request.params as Static<typeof jobParameters>).job_id.toLowerCase();
}

/** A parameter of lists. */
export const statusParameter = (description: string) =>
  Type.Optional(
    worded(
      Type.Enum([...loadStatuses], { type: 'string', description }),
      `status is one of ${loadStatuses.join(', ')}`,
    ),
  );

const exampleId = '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01';

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

export const listItemFields = {
  ...jobFields,
  elapsed_time: Type.Integer({ minimum: 0, description: 'Whole seconds from start to end, or to now.' }),
};

export const failure = Type.Object(
  {
    error_code: Type.String({ examples: ['too_many_rejects'] }),
    message: Type.String(),
  },
  { additionalProperties: false, description: 'Why the job failed; null unless it did.' },
);

/** In examples. */
export const exampleJobId = '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01';
export const exampleUrl = 'https://sluice.example.com/api/v1/analytics/exports';

export const warnings = Type.Array(
  Type.Object(
    {
      message: Type.String({ examples: ['There is no such field; it was ignored'] }),
      details: Type.String({ description: 'Where: the name of the field.', examples: ['form'] }),
    },
    { additionalProperties: false },
  ),
  { description: 'What of the request was ignored.' },
);

export const exportFields = {
  app_token: Type.String({ description: 'App token of the environment.', examples: ['NX-1A2B3C4D'] }),
  job_id: jobFields.job_id,
  type: Type.Unsafe<'export'>({ type: 'string', const: 'export' }),
  status: jobFields.status,
  progress: Type.Number({ minimum: 0, maximum: 1, description: 'Estimated, until it is 1.' }),
  start_time: jobFields.start_time,
  end_time: jobFields.end_time,
  rows: Type.Integer({ minimum: 0, description: 'Rows written so far.' }),
  bytes: Type.Integer({ minimum: 0, description: 'Bytes written so far.' }),
  links: Type.String({
    format: 'uri',
    description: 'Absolute URL of the export.',
    examples: [`${exampleUrl}/jobs/${exampleJobId}`],
  }),
};

export const exportItem = component(
  'ExportItem',
  Type.Object(exportFields, { additionalProperties: false, description: 'An export as the list shows it.' }),
);
export type ExportItem = Static<typeof exportItem.schema>;
