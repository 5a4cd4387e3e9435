import { type Static, Type } from 'typebox';
import { choice, component, count, flag, object, orNull, reasonFields, text, time, uuid } from './schema.ts';

const exampleTime = '2026-11-20T12:00:41.120Z';

const file_id = uuid('ID of the file in the ledger of the inbox.');
const name = text('Path below the folder of the environment, as the file was dropped.', 'users.csv');
const size = count('Size in bytes.', 85);
const job_id = orNull(uuid('The job of the file. Null if there is none.'));

export const takenAgain = object({ file_id, name }, 'The file.');

const waiting = object({ name, size, modified_at: time('When the file was last written to.', exampleTime) });

const taken = object({
  file_id,
  name,
  size,
  state: choice(['loading', 'refused'], '`loading`: its load is accepted. `refused`: there will be no load.'),
  taken_at: time('When a worker took the file.', exampleTime),
  job_id,
});

const concluded = object({
  file_id,
  name,
  size,
  outcome: choice(['done', 'failed'], 'The folder that the file lies in now.'),
  path: text(
    'Path below the folder of the environment. The receipt lies beside the file.',
    'done/2026-11-20/users.csv',
  ),
  job_id,
  is_duplicate: flag('True if the job loaded the same bytes before.'),
  rejected: count('Refused records of the job that have not been mended.'),
  reasons: Type.Array(object({ ...reasonFields, details: text('The place at fault. May be empty.') }), {
    description: 'Why the file was not loaded, or not completely.',
    examples: [[]],
  }),
  concluded_at: time('When the file was moved there.', exampleTime),
});

export const inboxRecord = component(
  'Inbox',
  object(
    {
      is_watched: flag('True if INBOX_DIR is set for this server and workers have watched it.'),
      waiting: count('Number of files in the folders, complete or not.'),
      files: Type.Array(waiting, { description: 'The first 200 waiting files, oldest first.' }),
      taken: Type.Array(taken, {
        description:
          'Files that were taken and are not yet in done or failed, in order of arrival; at most 200.',
      }),
      ignored: Type.Array(object({ name, why: text('The reason, as a sentence.') }), {
        description: 'Files that are left where they are.',
      }),
      held: Type.Array(Type.String(), {
        description: 'Folders whose mapping.yaml is wrong. Their files wait.',
      }),
      recent: Type.Array(concluded, { description: 'Outcomes of the last files, newest first.' }),
    },
    'The folder of the environment that is watched for files.',
  ),
);
export type Inbox = Static<typeof inboxRecord.schema>;
