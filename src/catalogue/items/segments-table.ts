import { sql } from 'kysely';
import type { Database } from '../../postgres/database.ts';
import type { ItemTable } from './item-table.ts';
import type { SegmentItem, StoredSegment } from './items.ts';

/** `sluice.segments` */
export const segmentsTable: ItemTable<SegmentItem, StoredSegment> = { read, toItem, add, change, remove };

async function read(db: Database, environmentId: number): Promise<StoredSegment[]> {
  const rows = await db
    .selectFrom('segments')
    .select([
      'segment_id as id',
      'key',
      'title',
      'usage',
      'category',
      'is_hidden',
      'is_protected',
      'status',
      'definition',
    ])
    .where('environment_id', '=', environmentId)
    .orderBy('segment_id')
    .execute();
  // A check constraint holds the definition to be an object.
  return rows.map((row) => ({ ...row, definition: row.definition as object }));
}

function toItem({ id: _, ...item }: StoredSegment): SegmentItem {
  return item;
}

async function add(db: Database, environmentId: number, items: readonly SegmentItem[]): Promise<void> {
  await db
    .insertInto('segments')
    .values(items.map((item) => ({ environment_id: environmentId, ...toRow(item) })))
    .execute();
}

async function change(db: Database, environmentId: number, item: SegmentItem): Promise<void> {
  await db
    .updateTable('segments')
    .set({ ...toRow(item), updated_at: sql`now()` })
    .where('environment_id', '=', environmentId)
    .where('key', '=', item.key)
    .execute();
}

async function remove(db: Database, environmentId: number, keys: readonly string[]): Promise<void> {
  await db
    .deleteFrom('segments')
    .where('environment_id', '=', environmentId)
    .where('key', '=', sql<string>`any(${keys}::text[])`)
    .execute();
}

function toRow(item: SegmentItem) {
  return { ...item, definition: JSON.stringify(item.definition) };
}
