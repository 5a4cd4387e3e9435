/** The segments of a request: the one whose users are exported, and those that are excluded. */
import { Type } from 'typebox';
import { FinalFailure, type Problem } from '../base/errors.ts';
import { createGlob } from '../base/glob.ts';
import { worded } from '../base/validation.ts';
import type { Exclusion } from '../domain/export.ts';
import { type DefinedSegment, readSegmentDefinitions } from '../lookups/segment-store.ts';
import { compileSegment } from '../lookups/segments/compile-segment.ts';
import { readSegment } from '../lookups/segments/read-segment.ts';
import type { SegmentScope } from '../lookups/segments/segment.ts';
import type { Database } from '../postgres/database.ts';
import type { SegmentTest } from './filter.ts';
import type { ExportOption } from './seam.ts';

const noSuchSegment =
  'There is no such segment; the lookup of segments lists those there are, and `sluice definitions apply FILE` makes them: docs/definitions.md';

const notASegmentId = 'segment_id is a string or an integer';

export const segmentOption: ExportOption<number> = {
  schema: worded(
    Type.Union([Type.String(), Type.Integer()], {
      description:
        'Only export the users of this segment, their companies and their events. The ID is that of the segment lookup.',
    }),
    notASegmentId,
  ),
  flag: '--segment <id>',
  description: 'only the users of this segment, and what belongs to them',
  read(given, problems) {
    const id = typeof given === 'string' && /^\d{1,15}$/.test(given) ? Number(given) : given;
    if (typeof id === 'number' && Number.isSafeInteger(id)) return id;
    problems.push(
      typeof given === 'string'
        ? { code: 'unknown_segment', message: noSuchSegment, details: 'segment_id' }
        : { code: 'invalid_field', message: notASegmentId, details: 'segment_id' },
    );
    return null;
  },
  findProblems: (db, environmentId, id) =>
    findUnknownSegments(db, environmentId, [{ id, details: 'segment_id' }]),
  async select(db, scope, id) {
    const row = (await readSegmentDefinitions(db, scope.environmentId)).find((each) => each.id === id);
    if (row === undefined) throw gone(id);
    return testOf(row, scope);
  },
};

export async function findUnknownSegments(
  db: Database,
  environmentId: number,
  segments: readonly { readonly id: number; readonly details: string }[],
): Promise<Problem[]> {
  if (segments.length === 0) return [];
  const ids = new Set((await readSegmentDefinitions(db, environmentId)).map(({ id }) => id));
  return segments
    .filter(({ id }) => !ids.has(id))
    .map(({ details }) => ({ code: 'unknown_segment', message: noSuchSegment, details }));
}

/**
 * Returns the conditions for the segments to exclude.
 * @throws FinalFailure if a segment no longer exists
 */
export async function excludedSegments(
  db: Database,
  scope: SegmentScope,
  exclusions: readonly Exclusion[],
): Promise<readonly SegmentTest[]> {
  const patterns = exclusions.filter(({ kind }) => kind === 'segment').map(({ pattern }) => pattern);
  if (patterns.length === 0) return [];
  const rows = await readSegmentDefinitions(db, scope.environmentId);
  for (const pattern of patterns.filter((each) => !each.includes('*'))) {
    if (!rows.some((row) => row.id === Number(pattern))) throw gone(pattern);
  }
  return rows
    .filter((row) => patterns.some((pattern) => matches(pattern, row.id)))
    .map((row) => testOf(row, scope));
}

function matches(pattern: string, id: number): boolean {
  if (!pattern.includes('*')) return Number(pattern) === id;
  return createGlob(pattern)(String(id));
}

function testOf(row: DefinedSegment, scope: SegmentScope): SegmentTest {
  const { segment } = readSegment(row.definition);
  if (segment !== null) return (user) => compileSegment(segment, { ...scope, user });
  throw new FinalFailure('unknown_segment', `The definition of segment ${row.id} cannot be read`);
}

function gone(id: number | string): FinalFailure {
  return new FinalFailure('unknown_segment', `Segment ${id} was removed before the export began`);
}
