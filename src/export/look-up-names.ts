import type { Problem } from '../domain/errors.ts';
import type { Database } from '../postgres/database.ts';
import { findFeaturesAndEvents } from '../postgres/stores/definitions.ts';
import { findSegmentIds } from '../postgres/stores/segments.ts';
import { noSuchSegment, type ReadRequest } from './read-request.ts';
import { namesAmong } from './select-events.ts';

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
  const ids = named.map(({ id }) => id);
  const known = await findSegmentIds(db, environmentId, ids);
  return named
    .filter(({ id }) => !known.has(id))
    .map(({ details }) => ({ code: 'unknown_segment', message: noSuchSegment, details }));
}

async function findUnknownEvents(
  db: Database,
  environmentId: number,
  names: readonly string[],
): Promise<Problem[]> {
  const known = await findFeaturesAndEvents(db, environmentId, names);
  return names
    .filter((name) => !known.has(name))
    .map((name) => ({
      code: 'unknown_event_type',
      message: 'This is neither users, companies, events nor the key of an event or feature',
      details: `event_type: ${name.slice(0, 100).toWellFormed()}`,
    }));
}
