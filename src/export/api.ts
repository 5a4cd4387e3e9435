import { type Static, Type } from 'typebox';
import { MEASURED_ROWS, PREVIEWED_ROWS } from '../base/limits.ts';
import { exampleJobId, failure, jobFields, lastError, listItemFields } from '../http/job.ts';
import { exportCounts, runFields } from '../http/run.ts';
import {
  choice,
  count,
  defineRecord,
  flag,
  item,
  listOf,
  object,
  orNull,
  sha256,
  text,
  texts,
  time,
  url,
} from '../http/schema.ts';

const exampleUrl = 'https://sluice.example.com/api/v1/analytics/exports';

const warnings = listOf(
  'Parts of the request that were ignored, a range that begins before the oldest month that the database keeps whole and, once the export is completed, loads that it may hold in part.',
  object('Something that the export leaves out.', {
    message: text('A sentence for a person.', 'There is no such field; it was ignored'),
    details: text('Name of the field.', 'form'),
  }),
  { examples: [[]] },
);

const exportFields = {
  app_token: text('App token of the environment.', 'NX-1A2B3C4D'),
  job_id: jobFields.job_id,
  type: Type.Unsafe<'export'>({ type: 'string', const: 'export', description: 'Type of the job.' }),
  status: jobFields.status,
  progress: Type.Number({
    minimum: 0,
    maximum: 1,
    description: 'Estimated share of the work that is done; 1 once it is completed.',
    examples: [1],
  }),
  start_time: jobFields.start_time,
  end_time: jobFields.end_time,
  rows: count('Rows written so far.', 1200),
  bytes: count('Bytes written so far.', 84213),
  links: url('Absolute URL of the export.', `${exampleUrl}/jobs/${exampleJobId}`),
  cursor: runFields.cursor,
};

export const exportItem = defineRecord('ExportItem', 'An export, as lists show it.', exportFields);
export type ExportItem = Static<typeof exportItem.schema>;

export const createdExport = defineRecord('CreatedExport', 'An accepted export.', {
  environment_app_token: exportFields.app_token,
  environment_name: text('Name of the environment.', 'default'),
  job_id: exportFields.job_id,
  links: exportFields.links,
  start_time: exportFields.start_time,
  warnings: Type.Optional(warnings),
});

const linkFields = (filename: string) => ({
  filename: text('Name of the file.', filename),
  url: url(
    'Download link. Anyone who has it can read the file without a key until it expires.',
    `${exampleUrl}/files/${exampleJobId}/${filename}?expires=1795000000&signature=6yCkQ0Xb`,
  ),
  bytes: count('Size of the download in bytes.', 84213),
  sha256: sha256('SHA-256 of the download.', '3b'.repeat(32)),
});

const presignedUrl = item({ ...linkFields('users.ndjson.gz'), rows: count('Rows in the file.', 1200) });

const manifestLink = object(
  'The manifest: rows, bytes and SHA-256 of every file. Null until there are files.',
  linkFields('manifest.json'),
);

export const exportJob = defineRecord('ExportJob', 'An export.', {
  ...exportFields,
  snapshot_time: orNull(time('The moment whose data all files show.', '2026-11-20T11:58:59.601Z')),
  presigned_urls: listOf(
    'The data files, from completion until they expire. Every request creates new links.',
    presignedUrl,
  ),
  manifest: orNull(manifestLink),
  files_expired: flag('True once the files are no longer kept.'),
  warnings,
  failure: orNull(failure),
});
export type ExportJob = Static<typeof exportJob.schema>;

export const exportJobDetail = defineRecord('ExportJobDetail', 'An export, shown as a background job.', {
  ...runFields,
  ...listItemFields,
  type: exportFields.type,
  completed_rows: count('Rows written so far.'),
  progress: exportFields.progress,
  counts: exportCounts,
  warnings,
  emails: texts('Addresses that are notified when the export ends.', []),
  last_error: lastError,
  attempts: count('Number of attempts begun.'),
  rows_per_second: orNull(count('Average speed. Null if the job has not run.')),
});

export type ExportJobDetail = Static<typeof exportJobDetail.schema>;

const rows = count('Number of rows at this moment.', 2);

const isExact = flag(
  'True if the rows were counted. False if they are estimated, because counting takes too long.',
);

const bytes = count(`Estimated size of the stored files, from the first ${MEASURED_ROWS} rows.`, 312);

const previewedFile = object('A file of the export.', {
  dataset: choice(['users', 'companies', 'events', 'stream'], 'Kind of rows.'),
  rows,
  is_exact: isExact,
  bytes,
  header: orNull(text('For CSV, the header line; otherwise null.', 'user_id,company_id,plan')),
  first_rows: listOf(
    'The first rows as the file will hold them; rows of Parquet are shown as NDJSON. Long rows are cut and end with an ellipsis.',
    Type.String(),
    { maxItems: PREVIEWED_ROWS, examples: [['u1,acme,pro', 'u2,,free']] },
  ),
});

export const exportPreview = defineRecord('ExportPreview', 'Size and first rows of an export.', {
  rows,
  is_exact: isExact,
  bytes,
  from: orNull(
    time('Inclusive start of the range. Null for the beginning of the data.', '2026-11-16T00:00:00.000000Z'),
  ),
  to: orNull(time('Exclusive end of the range. Null for no end.')),
  files: listOf('One entry for each kind of rows.', previewedFile),
  warnings,
});
export type ExportPreview = Static<typeof exportPreview.schema>;
