/** Reads the members of segments. Only events that are still in the database count. */
import type pg from 'pg';
import type { Logger } from 'pino';
import { inputError, TookTooLong } from '../base/errors.ts';
import type { FileStore } from '../files/file-store.ts';
import { findSegmentItem, readMembers, type SegmentMembers } from '../lookups/segment-store.ts';
import { compileSegment } from '../lookups/segments/compile-segment.ts';
import { readSegment } from '../lookups/segments/read-segment.ts';
import type { Segment } from '../lookups/segments/segment.ts';
import { type Database, databaseOn } from '../postgres/database.ts';
import type { Reader } from '../postgres/pool.ts';
import { inSnapshot } from '../postgres/session.ts';

const SEGMENT_PREVIEW_TIMEOUT_MS = 10_000;

export interface Sources {
  readonly reader: Reader;
  readonly files: FileStore;
  readonly log: Logger;
}

export interface SnapshotSources extends Pick<Sources, 'log'> {
  readonly pool: pg.Pool;
}

interface PreviewOptions {
  readonly sample?: number;
  readonly now?: Date;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/**
 * Counts a segment's users, and lists the first few of them. Stops if the signal is aborted.
 * @throws TookTooLong
 */
export async function previewSegment(
  source: SnapshotSources,
  environmentId: number,
  segment: Segment,
  { sample = 0, now = new Date(), timeoutMs = SEGMENT_PREVIEW_TIMEOUT_MS, signal }: PreviewOptions = {},
): Promise<SegmentMembers> {
  const late = AbortSignal.timeout(timeoutMs);
  const either = signal === undefined ? late : AbortSignal.any([signal, late]);
  try {
    return await inSnapshot(source, { name: 'sluice segment', signal: either }, ({ client }) =>
      readMembers(databaseOn(client), compileSegment(segment, { environmentId, now, user: 'u' }), sample),
    );
  } catch (error) {
    signal?.throwIfAborted();
    throw late.aborted ? new TookTooLong() : error;
  }
}

/** @throws InputError `unknown_segment`, including when a newer version stored the definition */
export async function requireSegment(db: Database, environmentId: number, id: number): Promise<Segment> {
  const item = await findSegmentItem(db, environmentId, { segmentId: id });
  const segment = item && readSegment(item.definition).segment;
  if (segment !== null) return segment;
  const message =
    item === null
      ? 'There is no such segment; the lookup of segments lists those there are'
      : 'The definition of this segment cannot be read; apply the definitions again';
  throw inputError('unknown_segment', message, 'segment_id');
}
