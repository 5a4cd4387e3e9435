import { inputError } from '../domain/errors.ts';
import { SEARCH_BUDGET_MS } from '../domain/limits.ts';
import type { Database } from '../postgres/database.ts';
import type { Reader } from '../postgres/pool.ts';
import { profileAlias } from '../postgres/stores/profiles.ts';
import {
  type DefinedSegment,
  findSegmentItem,
  findSegmentsAmong,
  readSegmentDefinitions,
} from '../postgres/stores/segments.ts';
import { compileSegment } from '../segments/compile-segment.ts';
import { readSegment } from '../segments/read-segment.ts';
import type { Segment } from '../segments/segment.ts';

const segmentsPerStatement = 20;

/** Returns null if there is none. @throws InputError `unknown_segment` if a newer version of this program has written it. */
export async function findSegment(db: Database, environmentId: number, id: number): Promise<Segment | null> {
  const item = await findSegmentItem(db, environmentId, id);
  if (item === null) return null;
  const { segment } = readSegment(item.definition);
  if (segment !== null) return segment;
  const message = 'The definition of this segment cannot be read; apply the definitions again';
  throw inputError('unknown_segment', message, `segment_id: ${id}`);
}

export async function requireSegment(db: Database, environmentId: number, id: number): Promise<Segment> {
  const segment = await findSegment(db, environmentId, id);
  if (segment !== null) return segment;
  const message = 'There is no such segment; the lookup of segments lists those there are';
  throw inputError('unknown_segment', message, 'segment_id');
}

interface UserSegments {
  readonly ids: readonly number[];
  readonly asked: number;
  readonly total: number;
}

/**
 * Asks some segments at a time, each only of this user, for SEARCH_BUDGET_MS; of the rest it says that they were not asked.
 * @throws the database's 57014 if a statement takes longer than the reader's connections allow.
 */
export async function findSegmentsOf(
  reader: Reader,
  environmentId: number,
  userId: string,
): Promise<UserSegments> {
  const readable = (await readSegmentDefinitions(reader.db, environmentId)).filter(
    ({ definition }) => readSegment(definition).segment !== null,
  );
  const ids: number[] = [];
  const now = new Date();
  const until = performance.now() + SEARCH_BUDGET_MS;
  let asked = 0;
  while (asked < readable.length && performance.now() < until) {
    const some = readable.slice(asked, asked + segmentsPerStatement);
    ids.push(...(await reader.inTurn(() => ask(reader, environmentId, userId, some, now))));
    asked += some.length;
  }
  return { ids, asked, total: readable.length };
}

function ask(
  { db }: Reader,
  environmentId: number,
  userId: string,
  segments: readonly DefinedSegment[],
  now: Date,
): Promise<number[]> {
  const tests = segments.flatMap(({ id, definition }) => {
    const { segment } = readSegment(definition);
    if (segment === null) return [];
    return [{ id, isIn: compileSegment(segment, { environmentId, now, user: profileAlias, only: userId }) }];
  });
  return findSegmentsAmong(db, environmentId, userId, tests);
}
