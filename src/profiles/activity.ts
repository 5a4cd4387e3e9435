import type { Entity } from '../domain/entity.ts';
import { instantOfMicros } from '../domain/instant.ts';
import { ACTIVITY_LAKE_MS, MAX_COUNTED_EVENTS } from '../domain/limits.ts';
import { type ColdReader, findColdEnd, readColdEvents } from '../export/write/cold-events.ts';
import { databaseOn } from '../postgres/database.ts';
import { inSnapshot } from '../postgres/session.ts';
import {
  type Activity,
  type ActivityQuery,
  type OtherEvents,
  readActivity,
} from '../postgres/stores/events.ts';
import type { Sources } from './segments.ts';

/**
 * Counts the latest events of a user or company. Those in the lake are looked for if there is room for them, for ACTIVITY_LAKE_MS; `countedSince`:
 * they took longer, and only later events were counted.
 */
export async function countActivity(
  { reader, files, log }: Sources,
  entity: Entity,
  environmentId: number,
  query: ActivityQuery,
): Promise<Activity & { readonly countedSince: string | null }> {
  const until = await findColdEnd(reader.db, environmentId);
  const stored = await reader.inTurn(() =>
    readActivity(reader.db, entity, environmentId, query, { since: until, times: [], names: [] }),
  );
  if (until === null || !stored.isComplete) return { ...stored, countedSince: null };
  const signal = AbortSignal.timeout(ACTIVITY_LAKE_MS);
  const asked = entity === 'users' ? { userIds: [query.id] } : { companyIds: [query.id] };
  try {
    const all = await reader.inTurn(() =>
      inSnapshot({ pool: reader.pool, log }, { name: 'sluice activity', signal }, async ({ client }) => {
        const others = await readLatest({ client, files }, environmentId, asked, signal);
        return readActivity(databaseOn(client), entity, environmentId, query, others);
      }),
    );
    return { ...all, countedSince: null };
  } catch (error) {
    if (!signal.aborted) throw error;
    return { ...stored, isComplete: false, countedSince: until };
  }
}

/** Events come in order of time; the latest are kept, as many as are counted. */
async function readLatest(
  reader: ColdReader,
  environmentId: number,
  asked: Parameters<typeof readColdEvents>[2],
  signal: AbortSignal,
): Promise<OtherEvents> {
  const kept = MAX_COUNTED_EVENTS + 1;
  let [times, names]: [number[], string[]] = [[], []];
  const since = await readColdEvents(reader, environmentId, asked, {
    signal,
    take(event) {
      times.push(event.micros);
      names.push(event.text('event_name'));
      if (times.length === 2 * kept) [times, names] = [times.slice(-kept), names.slice(-kept)];
    },
  });
  return { since, times: times.slice(-kept).map(instantOfMicros), names: names.slice(-kept) };
}
