import type { Static } from 'typebox';
import {
  choice,
  count,
  defineRecord,
  flag,
  item,
  items,
  listOf,
  object,
  orNull,
  reasonFields,
  text,
  texts,
  time,
  uuid,
} from '../../http/schema.ts';

const at = (description: string) => time(description, '2026-11-20T12:00:41.120Z');

const file_id = uuid('ID of the file in the ledger of the inbox.');
const name = text('Path below the folder of the environment, as the file was dropped.', 'users.csv');
const size = count('Size in bytes.', 85);
const job_id = orNull(uuid('The job of the file. Null if there is none.'));

export const takenAgain = object('The file.', { file_id, name });

const waiting = item({ name, size, modified_at: at('When the file was last written to.') });

const taken = item({
  file_id,
  name,
  size,
  state: choice(['loading', 'refused'], '`loading`: its load is accepted. `refused`: there will be no load.'),
  taken_at: at('When a worker took the file.'),
  job_id,
});

const concluded = item({
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
  rejected: count('Refused records of the job.'),
  reasons: listOf(
    'Why the file was not loaded, or not completely.',
    item({ ...reasonFields, details: text('The place at fault. May be empty.') }),
    { examples: [[]] },
  ),
  concluded_at: at('When the file was moved there.'),
});

export const inboxRecord = defineRecord('Inbox', 'The folder of the environment that is watched for files.', {
  is_watched: flag('True if INBOX_DIR is set for this server and workers have watched it.'),
  waiting: count('Number of files in the folders, complete or not.'),
  files: listOf('The first 200 waiting files, oldest first.', waiting),
  taken: listOf(
    'Files that were taken and are not yet in done or failed, in order of arrival; at most 200.',
    taken,
  ),
  ignored: items('Files that are left where they are.', { name, why: text('The reason, as a sentence.') }),
  held: texts('Folders whose mapping.yaml is wrong. Their files wait.'),
  recent: listOf('Outcomes of the last files, newest first.', concluded),
});
export type Inbox = Static<typeof inboxRecord.schema>;
