import { FinalFailure } from '../domain/errors.ts';
import type { ExportRequest } from '../domain/export.ts';
import { createGlob } from '../domain/glob.ts';
import type { Database } from '../postgres/database.ts';
import { type DefinedSegment, readSegmentDefinitions } from '../postgres/stores/segments.ts';
import { compileSegment } from '../segments/compile-segment.ts';
import { readSegment } from '../segments/read-segment.ts';
import type { Segment } from '../segments/segment.ts';
import type { Filter, SegmentTest } from './filter.ts';

/** The segments that a request names, as they are defined now; `now` is what days are counted back from. Throws `FinalFailure` for one that is gone. */
export async function findSegments(
  db: Database,
  environmentId: number,
  { segmentId, exclusions }: ExportRequest,
  now = new Date(),
): Promise<Pick<Filter, 'segment' | 'excludedSegments'>> {
  const patterns = exclusions.filter(({ kind }) => kind === 'segment').map(({ pattern }) => pattern);
  if (segmentId === null && patterns.length === 0) return { segment: null, excludedSegments: [] };
  const rows = await readSegmentDefinitions(db, environmentId);
  const wanted = rows.find((row) => row.id === segmentId);
  if (segmentId !== null && wanted === undefined) throw gone(segmentId);
  for (const pattern of patterns.filter((each) => !each.includes('*'))) {
    if (!rows.some((row) => row.id === Number(pattern))) throw gone(pattern);
  }
  const excluded = rows.filter((row) => patterns.some((pattern) => matches(pattern, row.id)));
  const compile = (row: DefinedSegment): SegmentTest => {
    const segment = read(row);
    return (user) => compileSegment(segment, { environmentId, now, user });
  };
  return {
    segment: wanted === undefined ? null : compile(wanted),
    excludedSegments: excluded.map(compile),
  };
}

function matches(pattern: string, id: number): boolean {
  if (!pattern.includes('*')) return Number(pattern) === id;
  return createGlob(pattern)(String(id));
}

function read(row: DefinedSegment): Segment {
  const { segment } = readSegment(row.definition);
  if (segment !== null) return segment;
  throw new FinalFailure('unknown_segment', `the definition of segment ${row.id} cannot be read`);
}

function gone(id: number | string): FinalFailure {
  return new FinalFailure('unknown_segment', `segment ${id} was removed before the export began`);
}
