import { anyObject, defineRecord, ordinal, orNull, sha256, text, time, uuid } from '../../http/schema.ts';

export const uploadOfLoad = defineRecord('UploadOfLoad', 'The file of a load, as an upload.', {
  upload_id: uuid(
    'ID that names the file in `POST /v1/imports/inspect` and `POST /v1/imports`.',
    '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c02',
  ),
  filename: orNull(text('Name of the file as given. Null if none was given.', 'users.csv')),
  content_type: orNull(text('Media type as given. Null if none was given.', 'text/csv')),
  file_size: ordinal('Size of the file in bytes.', 1048576),
  sha256: sha256('SHA-256 of the bytes as sent.', '3b'.repeat(32)),
  file_of: orNull(uuid('The job whose stored file this is. Null if the file was sent.'), null),
  created_at: time('When the file was received.'),
  expires_at: time('Until when the upload is kept: one day.'),
  options: anyObject(
    'The options with which `POST /v1/imports` reads the file as the job did. The file is kept unpacked and in UTF-8, tables as CSV and everything else as NDJSON.',
    { entity: 'users', map: { 'Customer No': 'user_id' }, format: 'csv', encoding: 'utf-8' },
  ),
});
