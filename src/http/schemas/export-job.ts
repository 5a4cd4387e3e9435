import { type Static, Type } from 'typebox';
import { component } from './component.ts';
import { failure } from './job-detail.ts';
import { jobFields } from './job-record.ts';
import { orNull } from './or-null.ts';

const jobId = '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01';
const base = 'https://sluice.example.com/api/v1/analytics/exports';

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
    examples: [`${base}/jobs/${jobId}`],
  }),
};

export const exportItem = component(
  'ExportItem',
  Type.Object(exportFields, { additionalProperties: false, description: 'An export as the list shows it.' }),
);
export type ExportItem = Static<typeof exportItem.schema>;

const presignedUrl = Type.Object(
  {
    filename: Type.String({ examples: ['users.ndjson.gz'] }),
    url: Type.String({
      format: 'uri',
      description: 'Whoever has it may read the file, without a key, until it expires.',
      examples: [`${base}/files/${jobId}/users.ndjson.gz?expires=1795000000&signature=…`],
    }),
    bytes: Type.Integer({ minimum: 0 }),
    rows: Type.Integer({ minimum: 0 }),
    sha256: Type.String({ pattern: '^[0-9a-f]{64}$', description: 'Of the file as it is downloaded.' }),
  },
  { additionalProperties: false },
);

export const exportJob = component(
  'ExportJob',
  Type.Object(
    {
      ...exportFields,
      snapshot_time: orNull(
        Type.String({ format: 'date-time', description: 'All files show the data as it was then.' }),
      ),
      presigned_urls: Type.Array(presignedUrl, {
        description: 'The files, once it is completed and while they are kept; new links at every request.',
      }),
      files_expired: Type.Boolean({ description: 'The files are no longer kept.' }),
      failure: orNull(failure),
    },
    { additionalProperties: false, description: 'An export.' },
  ),
);
export type ExportJob = Static<typeof exportJob.schema>;
