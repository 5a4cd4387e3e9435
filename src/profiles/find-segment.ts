import { inputError } from '../domain/errors.ts';
import type { Database } from '../postgres/database.ts';
import { findSegmentDefinition } from '../postgres/stores/segments.ts';
import { readSegment } from '../segments/read-segment.ts';
import type { Segment } from '../segments/segment.ts';

/** Returns null if there is none. @throws InputError `unknown_segment` if a newer version of this program has written it. */
export async function findSegment(db: Database, environmentId: number, id: number): Promise<Segment | null> {
  const definition = await findSegmentDefinition(db, environmentId, id);
  if (definition === null) return null;
  const { segment } = readSegment(definition);
  if (segment !== null) return segment;
  const message = 'The definition of this segment cannot be read; apply the definitions again';
  throw inputError('unknown_segment', message, `segment_id: ${id}`);
}

/** @throws InputError `unknown_segment`. */
export async function requireSegment(db: Database, environmentId: number, id: number): Promise<Segment> {
  const segment = await findSegment(db, environmentId, id);
  if (segment !== null) return segment;
  const message = 'There is no such segment; the lookup of segments lists those there are';
  throw inputError('unknown_segment', message, 'segment_id');
}
