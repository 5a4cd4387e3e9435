import { type Static, Type } from 'typebox';
import { exampleJobId } from './job.ts';
import { component, count, object, ordinal, orNull, sha256, text, time, uuid } from './schema.ts';

export const exampleUploadId = '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c02';

const uploadFields = {
  upload_id: uuid(
    'ID that names the file in `POST /v1/imports/inspect` and `POST /v1/imports`.',
    exampleUploadId,
  ),
  filename: orNull(text('Name of the file as given. Null if none was given.')),
  content_type: orNull(text('Media type as given. Null if none was given.')),
  file_size: ordinal('Size of the complete file in bytes.'),
  received_bytes: count('Bytes received so far: the offset of the next request.'),
  sha256: orNull(sha256('SHA-256 of the file. Null until it is complete.')),
  file_of: orNull(uuid('The job whose stored file this is. Null if the file was sent.')),
  created_at: time('When the upload was created.'),
  expires_at: time('Until when the upload is kept: one day after the last bytes came.'),
};

const exampleUpload = {
  upload_id: exampleUploadId,
  filename: 'users.csv',
  content_type: 'text/csv',
  file_size: 1048576,
  received_bytes: 524288,
  sha256: null,
  file_of: null,
  created_at: '2026-11-20T11:58:59.562Z',
  expires_at: '2026-11-21T11:59:12.104Z',
};

export const uploadRecord = component(
  'Upload',
  object(uploadFields, 'A file that is kept as sent, or the part of it that has come.', exampleUpload),
);
export type Upload = Static<typeof uploadRecord.schema>;

const exampleOptions = {
  entity: 'users',
  map: { 'Customer No': 'user_id' },
  format: 'csv',
  encoding: 'utf-8',
};

export const uploadOfLoad = component(
  'UploadOfLoad',
  object(
    {
      ...uploadFields,
      options: Type.Object(
        {},
        {
          additionalProperties: true,
          description:
            'The options with which `POST /v1/imports` reads the file as the job did. The file is kept unpacked and in UTF-8, tables as CSV and everything else as NDJSON.',
          examples: [exampleOptions],
        },
      ),
    },
    'The file of a load, as an upload.',
    {
      ...exampleUpload,
      content_type: null,
      received_bytes: 1048576,
      sha256: 'b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9',
      file_of: exampleJobId,
      options: exampleOptions,
    },
  ),
);
