import { type Static, Type } from 'typebox';
import { MEASURED_ROWS, PREVIEWED_ROWS } from '../domain/limits.ts';
import { exampleJobId, failure, jobFields, lastError, listItemFields } from './job.ts';
import { closed, component, orNull } from './schema.ts';

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

export const createdExport = component(
  'CreatedExport',
  Type.Object(
    {
      environment_app_token: exportFields.app_token,
      environment_name: Type.String({ description: 'Name of the environment.', examples: ['default'] }),
      job_id: exportFields.job_id,
      links: exportFields.links,
      start_time: exportFields.start_time,
      warnings,
    },
    { additionalProperties: false, description: 'An export that was accepted.' },
  ),
);
export type CreatedExport = Static<typeof createdExport.schema>;

function linkFields(filename: string) {
  return {
    filename: Type.String({ description: 'The name to keep it under.', examples: [filename] }),
    url: Type.String({
      format: 'uri',
      description: 'Whoever has it may read the file, without a key, until it expires.',
      examples: [`${exampleUrl}/files/${exampleJobId}/${filename}?expires=1795000000&signature=6yCkQ0Xb`],
    }),
    bytes: Type.Integer({ minimum: 0, description: 'Bytes as they are downloaded.', examples: [84213] }),
    sha256: Type.String({
      pattern: '^[0-9a-f]{64}$',
      description: 'Of the file as it is downloaded.',
      examples: ['3b'.repeat(32)],
    }),
  };
}

const presignedUrl = Type.Object(
  {
    ...linkFields('users.ndjson.gz'),
    rows: Type.Integer({ minimum: 0, description: 'Rows in it.', examples: [1200] }),
  },
  { additionalProperties: false },
);

const manifestLink = Type.Object(linkFields('manifest.json'), {
  additionalProperties: false,
  description: 'What says of every file its rows, bytes and SHA-256; null as long as there are no files.',
});

export const exportJob = component(
  'ExportJob',
  Type.Object(
    {
      ...exportFields,
      snapshot_time: orNull(
        Type.String({
          format: 'date-time',
          description: 'All files show the data as it was then.',
          examples: ['2026-11-20T11:58:59.601Z'],
        }),
      ),
      presigned_urls: Type.Array(presignedUrl, {
        description:
          'The files of data, once it is completed and while they are kept; new links at every request.',
      }),
      manifest: orNull(manifestLink),
      files_expired: Type.Boolean({ description: 'The files are no longer kept.' }),
      warnings,
      failure: orNull(failure),
    },
    { additionalProperties: false, description: 'An export.' },
  ),
);
export type ExportJob = Static<typeof exportJob.schema>;

export const exportJobDetail = component(
  'ExportJobDetail',
  Type.Object(
    {
      ...listItemFields,
      type: exportFields.type,
      completed_rows: Type.Integer({ minimum: 0, description: 'Rows written so far.' }),
      progress: exportFields.progress,
      warnings,
      failure: orNull(failure),
      last_error: lastError,
      attempts: Type.Integer({ minimum: 0, description: 'How often it was begun.' }),
      rows_per_second: orNull(Type.Integer({ minimum: 0, description: 'While it ran; null if it has not.' })),
    },
    { additionalProperties: false, description: 'An export, as background jobs are shown.' },
  ),
);
export type ExportJobDetail = Static<typeof exportJobDetail.schema>;

const rows = Type.Integer({ minimum: 0, description: 'Rows, as of this moment.' });

const isExact = Type.Boolean({
  description:
    'They were counted. False: counting takes too long and they are estimated, or some of them are in archives.',
});

const bytes = Type.Integer({
  minimum: 0,
  description: `As the files will be stored; an estimate from the first ${MEASURED_ROWS} rows.`,
});

const previewedFile = Type.Object(
  {
    dataset: Type.Enum(['users', 'companies', 'events', 'stream'], {
      type: 'string',
      description: 'What the rows are.',
    }),
    rows,
    is_exact: isExact,
    bytes,
    header: orNull(
      Type.String({ description: 'Of CSV: the line that names the columns; else null.', examples: [null] }),
    ),
    first_rows: Type.Array(Type.String(), {
      maxItems: PREVIEWED_ROWS,
      description:
        'As they will stand in the file; of Parquet and Avro as NDJSON. Long ones are cut, with an ellipsis. Of events those that are not in archives.',
    }),
  },
  closed,
);

export const exportPreview = component(
  'ExportPreview',
  Type.Object(
    {
      rows,
      is_exact: isExact,
      bytes,
      from: orNull(
        Type.String({
          format: 'date-time',
          description: 'Where the range begins, included; null: the beginning.',
          examples: ['2026-11-16T00:00:00.000000Z'],
        }),
      ),
      to: Type.String({ format: 'date-time', description: 'Where the range ends, excluded.' }),
      files: Type.Array(previewedFile, { description: 'One for each kind of rows.' }),
      warnings,
    },
    {
      ...closed,
      description: 'What an export would hold.',
      examples: [
        {
          rows: 2,
          is_exact: true,
          bytes: 312,
          from: '2026-11-16T00:00:00.000000Z',
          to: '2026-11-23T00:00:00.000000Z',
          files: [
            {
              dataset: 'users',
              rows: 2,
              is_exact: true,
              bytes: 312,
              header: 'user_id,company_id,plan,first_seen_at,last_seen_at',
              first_rows: [
                'u1,acme,pro,2026-11-01T08:00:00.000000Z,2026-11-20T12:34:56.123456Z',
                'u2,,free,2026-11-02T09:00:00.000000Z,2026-11-20T12:34:56.123456Z',
              ],
            },
          ],
          warnings: [],
        },
      ],
    },
  ),
);
export type ExportPreview = Static<typeof exportPreview.schema>;
