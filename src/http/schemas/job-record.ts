import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { deletionTypes } from '../../domain/deletion.ts';
import { loadStatuses, loadTypes } from '../../domain/load.ts';
import { ruled, worded } from '../../validation.ts';
import { component, orNull, severalOf } from './answers.ts';

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function isJobId(text: string): boolean {
  return uuid.test(text);
}

const idOptions = (what: string) => ({
  format: 'uuid',
  description: `Id of the ${what}, as its record has it.`,
  examples: ['01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01'],
});
export const jobIdOptions = idOptions('job');

/** The id in the path of everything that concerns one such thing. Anything but a UUID is no id of one. */
export function idParameter<const Name extends string>(name: Name, what: string) {
  const message = `there is no such ${what}`;
  const id = worded(
    ruled(Type.String(idOptions(what)), (text) => (isJobId(text) ? null : message)),
    {
      says: (value) => ({
        code: 'not_found',
        message,
        details: `${name}: ${String(value).slice(0, 100)}`,
      }),
    },
  );
  return Type.Object({ [name]: id } as Record<Name, typeof id>);
}

export const jobParameters = idParameter('job_id', 'job');

/** The id in the path, which the schema has let through, as we write it. */
export function jobIdOf(request: FastifyRequest): string {
  return (request.params as Static<typeof jobParameters>).job_id.toLowerCase();
}

/** A parameter of lists. */
export const statusParameter = (description: string) => severalOf('status', loadStatuses, description);

/** In examples. */
export const exampleJobId = '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01';
export const exampleJobUrl = `https://sluice.example.com/v1/background_jobs/${exampleJobId}`;

export const jobFields = {
  job_id: Type.String({
    format: 'uuid',
    description: 'Version 7: ids sort by the time of acceptance.',
    examples: [exampleJobId],
  }),
  type: Type.Enum([...loadTypes, 'export', ...deletionTypes] as const, {
    type: 'string',
    description: 'What the job does.',
  }),
  status: Type.Enum([...loadStatuses], {
    type: 'string',
    description:
      'queued → processing → completed, failed or cancelled. A job some of whose records were refused is completed.',
    examples: ['completed'],
  }),
  filename: Type.String({
    description: 'Of a load, the name that the file came with; of other jobs, what they are about.',
    examples: ['users.csv'],
  }),
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
      examples: ['2026-11-20T11:59:00.102Z'],
    }),
  ),
  links: Type.String({
    format: 'uri',
    description: 'Absolute URL of the job.',
    examples: [exampleJobUrl],
  }),
};

export const jobRecord = component(
  'JobRecord',
  Type.Object(jobFields, {
    additionalProperties: false,
    description: 'A background job.',
    examples: [
      {
        job_id: exampleJobId,
        type: 'bulk_identify_users',
        status: 'queued',
        filename: 'users.csv',
        file_size: 85,
        total_rows: 4,
        start_time: '2026-11-20T11:58:59.562Z',
        end_time: null,
        links: exampleJobUrl,
      },
    ],
  }),
);
export type JobRecord = Static<typeof jobRecord.schema>;

export const listItemFields = {
  ...jobFields,
  processing_since: orNull(
    Type.String({
      format: 'date-time',
      description:
        'When the current work, or the last, began. For an applied plan it is the start of the loading, not of the planning. Null while the job waits.',
      examples: ['2026-11-20T11:58:59.702Z'],
    }),
  ),
  elapsed_time: Type.Integer({ minimum: 0, description: 'Whole seconds from start to end, or to now.' }),
};

export const failure = Type.Object(
  {
    error_code: Type.String({ description: 'Stable; for programs.', examples: ['too_many_rejects'] }),
    message: Type.String({ description: 'A sentence for a person.' }),
  },
  { additionalProperties: false, description: 'Why the job failed; null unless it did.', examples: [null] },
);

/** In examples. */
export const exampleUrl = 'https://sluice.example.com/api/v1/analytics/exports';

export const warnings = Type.Array(
  Type.Object(
    {
      message: Type.String({
        description: 'A sentence for a person.',
        examples: ['There is no such field; it was ignored'],
      }),
      details: Type.String({ description: 'Where: the name of the field.', examples: ['form'] }),
    },
    { additionalProperties: false },
  ),
  { description: 'What of the request was ignored.', examples: [[]] },
);

export const exportFields = {
  app_token: Type.String({ description: 'App token of the environment.', examples: ['NX-1A2B3C4D'] }),
  job_id: jobFields.job_id,
  type: Type.Unsafe<'export'>({ type: 'string', const: 'export', description: 'What the job does.' }),
  status: jobFields.status,
  progress: Type.Number({
    minimum: 0,
    maximum: 1,
    description: 'Estimated, until it is 1.',
    examples: [1],
  }),
  start_time: jobFields.start_time,
  end_time: jobFields.end_time,
  rows: Type.Integer({ minimum: 0, description: 'Rows written so far.', examples: [1200] }),
  bytes: Type.Integer({ minimum: 0, description: 'Bytes written so far.', examples: [84213] }),
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
