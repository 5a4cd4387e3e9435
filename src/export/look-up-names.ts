import type { Problem } from '../domain/errors.ts';
import type { Database } from '../postgres/database.ts';
import { noSuchSegment, type ReadRequest } from './read-request.ts';
import { namesAmong } from './select-events.ts';

/** The largest id that a segment can have: Postgres refuses to look for a larger one. */
const maxSegmentId = 2 ** 31 - 1;

/** What the request names and the environment does not have. */
export async function lookUpNames(
  db: Database,
  environmentId: number,
  { request, eventTypes }: ReadRequest,
): Promise<Problem[]> {
  const named = request.exclusions
    .filter(({ kind, pattern }) => kind === 'segment' && !pattern.includes('*'))
    .map(({ pattern }) => ({ id: Number(pattern), details: `exclusions: segment:${pattern}` }));
  if (request.segmentId !== null) named.unshift({ id: request.segmentId, details: 'segment_id' });
  return [
    ...(await findUnknownSegments(db, environmentId, named)),
    ...(await findUnknownEvents(db, environmentId, namesAmong(eventTypes))),
  ];
}

async function findUnknownSegments(
  db: Database,
  environmentId: number,
  named: readonly { readonly id: number; readonly details: string }[],
): Promise<Problem[]> {
  const ids = named.map(({ id }) => id).filter((id) => id > 0 && id <= maxSegmentId);
  const rows =
    ids.length === 0
      ? []
      : await db
          .selectFrom('segments')
          .select('segment_id')
          .where('environment_id', '=', environmentId)
          .where('segment_id', 'in', ids)
          .execute();
  const known = new Set(rows.map((row) => row.segment_id));
  return named
    .filter(({ id }) => !known.has(id))
    .map(({ details }) => ({ code: 'unknown_segment', message: noSuchSegment, details }));
}

/** An event is known by the name it was tracked under, or as a feature that was defined. */
async function findUnknownEvents(
  db: Database,
  environmentId: number,
  names: readonly string[],
): Promise<Problem[]> {
  if (names.length === 0) return [];
  const rows = await db
    .selectFrom('event_names')
    .select('event_name as name')
    .where('environment_id', '=', environmentId)
    .where('event_name', 'in', names)
    .union(
      db
        .selectFrom('keyed_items')
        .select('key as name')
        .where('environment_id', '=', environmentId)
        .where('kind', '=', 'features')
        .where('key', 'in', names),
    )
    .execute();
  const known = new Set(rows.map((row) => row.name));
  return names
    .filter((name) => !known.has(name))
    .map((name) => ({
      code: 'unknown_event_type',
      message: 'This is neither users, companies, events nor the key of an event or feature',
      details: `event_type: ${name.slice(0, 100).toWellFormed()}`,
    }));
}
