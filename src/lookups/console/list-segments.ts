import { withQuery } from '../../console/client/lib/address.ts';
import { api } from '../../console/client/lib/api.ts';
import type { Segment, SegmentPage } from '../api.ts';

/** Returns the path of a page of segments, as long as a page may be. */
export function segmentsPath(cursor: string): string {
  return withQuery('/api/v1/analytics/exports/lookups/segments', { limit: 200, after_cursor: cursor });
}

interface SegmentChoice {
  readonly data: readonly Segment[];
  readonly isCut: boolean;
}

/** Segments beyond these pages are not offered for choice, and `isCut` says so. */
const mostPages = 50;

export async function loadSegments(signal: AbortSignal): Promise<SegmentChoice> {
  const data: Segment[] = [];
  let cursor = '';
  for (let page = 0; page < mostPages; page++) {
    const found = await api<SegmentPage>(segmentsPath(cursor), { signal });
    data.push(...found.data);
    cursor = found.metadata.cursor.after;
    if (cursor === '') return { data, isCut: false };
  }
  return { data, isCut: true };
}
