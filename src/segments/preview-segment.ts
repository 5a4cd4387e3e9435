import { sql } from 'kysely';
import { MAX_SEGMENT_SAMPLE, SEGMENT_PREVIEW_TIMEOUT_MS } from '../domain/limits.ts';
import type { Database } from '../postgres/database.ts';
import { compileSegment } from './compile-segment.ts';
import type { Segment } from './segment.ts';

export interface PreviewOptions {
  /** User ids to show, the first in order; at most MAX_SEGMENT_SAMPLE. */
  readonly sample?: number;
  readonly now?: Date;
  /** For each of the two statements. */
  readonly timeoutMs?: number;
}

export interface SegmentPreview {
  readonly users: number;
  readonly sample: readonly string[];
}

/**
 * How many users are in the segment, and some of them.
 * @throws the database's 57014 (transient to `isTransient`) if it takes too long.
 */
export async function previewSegment(
  db: Database,
  environmentId: number,
  segment: Segment,
  options: PreviewOptions = {},
): Promise<SegmentPreview> {
  const { sample = 10, now = new Date(), timeoutMs = SEGMENT_PREVIEW_TIMEOUT_MS } = options;
  const inSegment = compileSegment(segment, { environmentId, now, user: 'u' });
  // One snapshot, so that nobody is shown who is not counted.
  const snapshot = db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only');
  return snapshot.execute(async (transaction) => {
    await sql`select set_config('statement_timeout', ${String(timeoutMs)}, true)`.execute(transaction);
    const users = transaction.selectFrom('users as u').where(inSegment);
    const { count } = await users
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow();
    const shown = await users
      .select('u.user_id')
      .orderBy('u.user_id')
      .limit(Math.min(sample, MAX_SEGMENT_SAMPLE))
      .execute();
    return { users: count, sample: shown.map((row) => row.user_id) };
  });
}
