import { type Static, Type } from 'typebox';
import { component, count, object, ordinal, orNull, sha256, text, time, uuid } from './schema.ts';

export const exampleUploadId = '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c02';

const uploadFields = {
  upload_id: uuid(
    'ID that names the file in `POST /v1/imports/inspect` and `POST /v1/imports`.',
    exampleUploadId,
  ),
  filename: orNull(text('Name of the file as given. Null if none was given.', 'users.csv')),
  content_type: orNull(text('Media type as given. Null if none was given.', 'text/csv')),
  file_size: ordinal('Size of the complete file in bytes.', 1048576),
  received_bytes: count('Bytes received so far: the offset of the next request.', 524288),
  sha256: orNull(sha256('SHA-256 of the file. Null until it is complete.'), null),
  file_of: orNull(uuid('The job whose stored file this is. Null if the file was sent.'), null),
  created_at: time('When the upload was created.'),
  expires_at: time('Until when the upload is kept: one day after the last bytes came.'),
};

export const uploadRecord = component(
  'Upload',
  object(uploadFields, 'A file that is kept as sent, or the part of it that has come.'),
);
export type Upload = Static<typeof uploadRecord.schema>;

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
          examples: [
            { entity: 'users', map: { 'Customer No': 'user_id' }, format: 'csv', encoding: 'utf-8' },
          ],
        },
      ),
    },
    'The file of a load, as an upload.',
  ),
);
