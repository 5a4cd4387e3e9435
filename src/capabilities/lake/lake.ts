/*
 * The lake: an Iceberg table of each environment's events in the file store, for other engines.
 * `append-events.ts` adds new events, `archive-events.ts` takes events past their retention,
 * `erase.ts` removes deleted people. No snapshot lacks an event or has it twice.
 */
import type { Capability } from '../../capability.ts';
import { tendLake } from './append-events.ts';
import { archiveEvents } from './archive-events.ts';
import { removeReplaced } from './commit.ts';
import { eraseFiles } from './erase.ts';
import { findMovedUntil } from './file-store.ts';
import { noteErased } from './month-store.ts';

export const lake: Capability = {
  name: 'lake',
  archive: {
    label: 'the lake',
    isOn: ({ lakeEveryMs }) => lakeEveryMs !== null,
    tend: tendLake,
    archive: archiveEvents,
    sweep: removeReplaced,
  },
  deletions: {
    eraseFiles,
    // The lake may lack events that are still in the database.
    failed: (db, environmentId) => noteErased(db, environmentId, null, { isLate: true }),
    findMovedUntil,
  },
  figures: async () => (await import('./figures.ts')).figures,
  work: async () => (await import('./work.ts')).work,
};
