import { noRows } from './invariant.ts';

/** Only of versions that have an inbox. */
export const inboxIsDone = noRows(
  'every file taken from the inbox is concluded',
  `select 'inbox file ' || name || ' is ' || state as what from sluice.inbox_files where state <> 'concluded'`,
);
