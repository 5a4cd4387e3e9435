import { walkPages } from '../../base/pages.ts';
import type { ActContext } from '../../postgres/acts.ts';
import type { Database } from '../../postgres/database.ts';
import type { AuditEntry } from './api.ts';
import { type Entry, type EntryFilter, type EntryScope, listEntries } from './store.ts';

const entriesAtATime = 1_000;

export function renderEntry(entry: Entry): AuditEntry {
  return {
    id: String(entry.entryId),
    environment: entry.environment,
    at: entry.at.toISOString(),
    last_at: entry.lastAt.toISOString(),
    count: Number(entry.count),
    action: entry.action,
    outcome: entry.outcome,
    actor: {
      kind: entry.actorKind,
      name: entry.actorName,
      session_id: entry.sessionId,
      address: entry.address,
    },
    thing: entry.thing,
    details: entry.details,
  };
}

/** `environmentId` is `null` for the whole log. */
export function recordDownload({ db, acts }: ActContext, environmentId: number | null): Promise<void> {
  return acts.record(db, { action: 'audit.downloaded', environmentId, thing: null, isFrequent: true });
}

/** Yields NDJSON, newest entry first, in constant memory. */
export async function* exportEntries(
  db: Database,
  scope: EntryScope,
  filter: EntryFilter,
): AsyncGenerator<Buffer> {
  const read = async (before: number | null) => {
    const entries = await listEntries(db, scope, filter, { before, limit: entriesAtATime });
    return { entries, next: entries.length < entriesAtATime ? null : (entries.at(-1)?.entryId ?? null) };
  };
  for await (const { entries } of walkPages<number | null, Awaited<ReturnType<typeof read>>>(null, read)) {
    if (entries.length === 0) continue;
    yield Buffer.from(entries.map((entry) => `${JSON.stringify(renderEntry(entry))}\n`).join(''));
  }
}
