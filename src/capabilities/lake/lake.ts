/*
 * The lake: for each environment, an Iceberg table of its events, for other query engines.
 * `append-events.ts` adds new events, `archive-events.ts` moves events whose retention has ended,
 * and `erase.ts` removes deleted people. Every snapshot contains each event exactly once.
 */
import type { Capability } from '../../capability.ts';
import { maintainLake } from './append-events.ts';
import { archiveEvents } from './archive-events.ts';
import { removeReplaced } from './commit.ts';
import { eraseFiles } from './erase.ts';
import { findMovedUntil } from './file-store.ts';
import { recordErasure } from './month-store.ts';

export const lake: Capability = {
  name: 'lake',
  archive: {
    label: 'the lake',
    isOn: ({ lakeEveryMs }) => lakeEveryMs !== null,
    maintain: maintainLake,
    archive: archiveEvents,
    sweep: removeReplaced,
  },
  deletions: {
    eraseFiles,
    // After a failed deletion, events that are still in the database may be missing from the lake.
    failed: (db, environmentId) => recordErasure(db, environmentId, null, { isStale: true }),
    findMovedUntil,
  },
  definitions: async () => (await import('./columns.ts')).columns,
  figures: async () => (await import('./figures.ts')).figures,
  work: async () => (await import('./work.ts')).work,
};
