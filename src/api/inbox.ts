import { type Static, Type } from 'typebox';
import { closed, component, orNull } from './schema.ts';

const exampleTime = '2026-11-20T12:00:41.120Z';

const time = (description: string) =>
  Type.String({ format: 'date-time', description, examples: [exampleTime] });

export const name = Type.String({ description: 'As it was dropped, below the folder of the environment.' });

const size = Type.Integer({ minimum: 0, description: 'Bytes.' });

export const fileId = Type.String({ format: 'uuid', description: 'Its id in the ledger of the inbox.' });

const jobId = orNull(Type.String({ format: 'uuid', description: 'Its job; null: there is none.' }));

const reason = Type.Object(
  {
    error_code: Type.String({ description: 'Stable; for programs.' }),
    message: Type.String({ description: 'A sentence for a person.' }),
    details: Type.String({ description: 'Where; may be empty.' }),
  },
  closed,
);

export const inboxRecord = component(
  'Inbox',
  Type.Object(
    {
      is_watched: Type.Boolean({
        description: 'INBOX_DIR is set for this server, and workers have watched it.',
      }),
      waiting: Type.Integer({ minimum: 0, description: 'Files that lie in the folders, complete or not.' }),
      files: Type.Array(
        Type.Object({ name, size, modified_at: time('When it was written to last.') }, closed),
        { description: 'The first 200 of them, the oldest first.' },
      ),
      taken: Type.Array(
        Type.Object(
          {
            file_id: fileId,
            name,
            size,
            state: Type.Enum(['claimed', 'loading', 'refused'], {
              type: 'string',
              description: 'Not received yet, its load is accepted, or there will be none.',
            }),
            claimed_at: time('When it was taken.'),
            job_id: jobId,
          },
          closed,
        ),
        {
          description:
            'Those that were taken and are not in done or failed yet, in order of arrival; 200 at most.',
        },
      ),
      ignored: Type.Array(Type.Object({ name, why: Type.String({ description: 'A sentence.' }) }, closed), {
        description: 'Files that are left where they are.',
      }),
      held: Type.Array(Type.String(), {
        description: 'Folders whose mapping.yaml is wrong; what lies there waits.',
      }),
      recent: Type.Array(
        Type.Object(
          {
            file_id: fileId,
            name,
            size,
            outcome: Type.Enum(['done', 'failed'], { type: 'string', description: 'Where it lies now.' }),
            path: Type.String({
              description: 'Its place below the folder of the environment; the receipt is beside it.',
            }),
            job_id: jobId,
            is_duplicate: Type.Boolean({ description: 'The job loaded the same bytes before.' }),
            rejected: Type.Integer({
              minimum: 0,
              description: 'Records that its job refused and that have not been mended.',
            }),
            reasons: Type.Array(reason, { description: 'Why it was not loaded, or not as a whole.' }),
            concluded_at: time('When it was moved there.'),
          },
          closed,
        ),
        { description: 'What became of the last ones, the newest first.' },
      ),
    },
    {
      ...closed,
      description: 'The folder of the environment that is watched for files.',
      examples: [
        {
          is_watched: true,
          waiting: 1,
          files: [{ name: 'users.csv', size: 85, modified_at: exampleTime }],
          taken: [],
          ignored: [],
          held: [],
          recent: [
            {
              file_id: '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01',
              name: 'users-1.csv',
              size: 85,
              outcome: 'done',
              path: 'done/2026-11-20/users-1.csv',
              job_id: '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01',
              is_duplicate: false,
              rejected: 0,
              reasons: [],
              concluded_at: exampleTime,
            },
          ],
        },
      ],
    },
  ),
);
export type Inbox = Static<typeof inboxRecord.schema>;
