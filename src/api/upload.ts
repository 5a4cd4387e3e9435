import { type Static, Type } from 'typebox';
import { exampleJobId } from './job.ts';
import { component, orNull } from './schema.ts';

export const exampleUploadId = '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c02';

export const uploadFields = {
  upload_id: Type.String({
    format: 'uuid',
    description: 'Names the file in `POST /v1/imports/inspect` and `POST /v1/imports`.',
    examples: [exampleUploadId],
  }),
  filename: orNull(Type.String({ description: 'As it was said; null: without a name.' })),
  content_type: orNull(Type.String({ description: 'As it was said; null: nothing was.' })),
  file_size: Type.Integer({ minimum: 1, description: 'Bytes of the whole file.' }),
  received_bytes: Type.Integer({
    minimum: 0,
    description: 'Of these, the bytes that have come: where the next request begins.',
  }),
  sha256: orNull(
    Type.String({
      pattern: '^[0-9a-f]{64}$',
      description: 'Of the file; null before it has come whole.',
    }),
  ),
  file_of: orNull(
    Type.String({ format: 'uuid', description: 'The job whose stored file it is; null: it was sent.' }),
  ),
  created_at: Type.String({ format: 'date-time', description: 'When it was created.' }),
  expires_at: Type.String({
    format: 'date-time',
    description: 'Until when it is kept: a day after the last of its bytes came.',
  }),
};

export const exampleUpload = {
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
  Type.Object(uploadFields, {
    additionalProperties: false,
    description: 'A file that is kept as it was sent, or as much of it as has come.',
    examples: [exampleUpload],
  }),
);
export type Upload = Static<typeof uploadRecord.schema>;

export const uploadOfLoad = component(
  'UploadOfLoad',
  Type.Object(
    {
      ...uploadFields,
      options: Type.Object(
        {},
        {
          additionalProperties: true,
          description:
            'The options with which `POST /v1/imports` reads the file as the job did: it is kept unpacked and in UTF-8, tables as CSV and all else as NDJSON.',
          examples: [
            { entity: 'users', map: { 'Customer No': 'user_id' }, format: 'csv', encoding: 'utf-8' },
          ],
        },
      ),
    },
    {
      additionalProperties: false,
      description: 'The file of a load, as an upload.',
      examples: [
        {
          ...exampleUpload,
          content_type: null,
          received_bytes: 1048576,
          sha256: 'b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9',
          file_of: exampleJobId,
          options: {
            entity: 'users',
            map: { 'Customer No': 'user_id' },
            format: 'csv',
            encoding: 'utf-8',
          },
        },
      ],
    },
  ),
);
export type UploadOfLoad = Static<typeof uploadOfLoad.schema>;
