import { withQuery } from '../../console/client/lib/address.ts';
import { api } from '../../console/client/lib/api.ts';
import type { Segment, SegmentPage } from '../api.ts';

export function segmentsPath(cursor: string): string {
  return withQuery('/api/v1/analytics/exports/lookups/segments', { limit: 200, after_cursor: cursor });
}

interface SegmentChoice {
  readonly data: readonly Segment[];
  readonly isCut: boolean;
}

/** `isCut` is true if there are more pages. */
const mostPages = 50;

export async function loadSegments(signal: AbortSignal): Promise<SegmentChoice> {
  const data: Segment[] = [];
  let cursor = '';
  for (let page = 0; page < mostPages; page++) {
    const answer = await api<SegmentPage>(segmentsPath(cursor), { signal });
    data.push(...answer.data);
    cursor = answer.metadata.cursor.after;
    if (cursor === '') return { data, isCut: false };
  }
  return { data, isCut: true };
}
