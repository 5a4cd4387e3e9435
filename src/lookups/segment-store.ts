import type { Expression, SqlBool } from 'kysely';
import type { SegmentItem, StoredSegment } from '../domain/definitions.ts';
import { type Database, rowOf, selectWhere } from '../postgres/database.ts';

type ListedSegment = Omit<SegmentItem, 'key' | 'made_by' | 'definition'> & { readonly id: number };

export interface PageQuery<Place> {
  readonly limit: number;
  readonly after: Place | null;
  readonly before: Place | null;
  readonly offset: number;
}

export interface LookupPage<Item> {
  readonly items: readonly Item[];
  readonly total: number;
  readonly hasBefore: boolean;
  readonly hasAfter: boolean;
}

const listed = [
  'segment_id as id',
  'title',
  'usage',
  'category',
  'is_hidden',
  'is_protected',
  'status',
] as const;

export async function listSegments(
  db: Database,
  environmentId: number,
  { limit, after, before, offset }: PageQuery<number>,
): Promise<LookupPage<ListedSegment>> {
  const all = selectWhere(db, 'segments', { environmentId });
  const segments = await all
    .select(listed)
    .$if(after !== null, (query) => query.where('segment_id', '>', after))
    .$if(before !== null, (query) => query.where('segment_id', '<', before))
    .orderBy('segment_id', before === null ? 'asc' : 'desc')
    .limit(limit)
    .offset(offset)
    .execute();
  if (before !== null) segments.reverse();
  const { total, lowest, highest } = await all
    .select(({ fn }) => [
      fn.countAll<number>().as('total'),
      fn.min('segment_id').as('lowest'),
      fn.max('segment_id').as('highest'),
    ])
    .executeTakeFirstOrThrow();
  const first = segments[0];
  const last = segments.at(-1);
  return {
    items: segments,
    total,
    hasBefore: first !== undefined && lowest !== null && lowest < first.id,
    hasAfter: last !== undefined && highest !== null && highest > last.id,
  };
}

export interface DefinedSegment {
  readonly id: number;
  readonly definition: unknown;
}

export function readSegmentDefinitions(db: Database, environmentId: number): Promise<DefinedSegment[]> {
  return selectWhere(db, 'segments', { environmentId })
    .select(['segment_id as id', 'definition'])
    .orderBy('segment_id')
    .execute();
}

/** PostgreSQL refuses to compare the column with a larger number. */
const maxSegmentId = 2 ** 31 - 1;

export async function findSegmentItem(
  db: Database,
  environmentId: number,
  by: { readonly segmentId: number } | { readonly key: string },
): Promise<StoredSegment | null> {
  if ('segmentId' in by && (by.segmentId < 1 || by.segmentId > maxSegmentId)) return null;
  const row = await selectWhere(db, 'segments', { environmentId, ...by })
    .select([...listed, 'key', 'made_by', 'definition'])
    .executeTakeFirst();
  return row ?? null;
}

interface OtherSegments {
  readonly segments: number;
  readonly characters: number;
  /** Key of the segment with the same title, or `null`. */
  readonly namesake: string | null;
}

export async function measureSegments(
  db: Database,
  environmentId: number,
  { key, title }: { readonly key: string; readonly title: string },
): Promise<OtherSegments> {
  return rowOf<OtherSegments>(db)`
    select
      count(*) as segments,
      coalesce(sum(length(definition::text)), 0)::bigint as characters,
      min(key) filter (where lower(title) = lower(${title})) as namesake
    from segments
    where environment_id = ${environmentId} and key <> ${key}`;
}

export interface SegmentMembers {
  readonly users: number;
  readonly sample: readonly string[];
}

/**
 * Counts the users for whom `isIn` is true, and returns the first few ids. `isIn` is a condition on
 * the users table, whose alias is `u`.
 */
export async function readMembers(
  db: Database,
  isIn: Expression<SqlBool>,
  sample: number,
): Promise<SegmentMembers> {
  const users = db.selectFrom('users as u').where(isIn);
  const { count } = await users
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  if (sample === 0) return { users: count, sample: [] };
  const shown = await users.select('u.user_id').orderBy('u.user_id').limit(sample).execute();
  return { users: count, sample: shown.map((row) => row.user_id) };
}
