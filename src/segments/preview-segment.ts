import { MAX_SEGMENT_SAMPLE, SEGMENT_PREVIEW_TIMEOUT_MS } from '../domain/limits.ts';
import type { Database } from '../postgres/database.ts';
import { readMembers, type SegmentMembers } from '../postgres/stores/segments.ts';
import { compileSegment } from './compile-segment.ts';
import type { Segment } from './segment.ts';

export interface PreviewOptions {
  readonly sample?: number;
  readonly now?: Date;
  readonly timeoutMs?: number;
}

export function previewSegment(
  db: Database,
  environmentId: number,
  segment: Segment,
  { sample = 10, now = new Date(), timeoutMs = SEGMENT_PREVIEW_TIMEOUT_MS }: PreviewOptions = {},
): Promise<SegmentMembers> {
  const isIn = compileSegment(segment, { environmentId, now, user: 'u' });
  return readMembers(db, isIn, Math.min(sample, MAX_SEGMENT_SAMPLE), timeoutMs);
}
