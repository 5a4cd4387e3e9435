import { sql } from 'kysely';
import type { Database } from '../../postgres/database.ts';
import type { ItemTable } from './item-table.ts';
import type { KeyedItem, KeyedKind } from './items.ts';

/** `sluice.keyed_items`, as far as it is about one kind. */
export function keyedItemsOf(kind: KeyedKind): ItemTable<KeyedItem> {
  return {
    read: (db, environmentId) => read(db, environmentId, kind),
    toItem: (item) => item,
    async add(db, environmentId, items) {
      await db
        .insertInto('keyed_items')
        .values(items.map((item) => ({ environment_id: environmentId, kind, ...item })))
        .execute();
    },
    async change(db, environmentId, item) {
      await db
        .updateTable('keyed_items')
        .set({ ...item, updated_at: sql`now()` })
        .where('environment_id', '=', environmentId)
        .where('kind', '=', kind)
        .where('key', '=', item.key)
        .execute();
    },
    async remove(db, environmentId, keys) {
      await db
        .deleteFrom('keyed_items')
        .where('environment_id', '=', environmentId)
        .where('kind', '=', kind)
        .where('key', '=', sql<string>`any(${keys}::text[])`)
        .execute();
    },
  };
}

function read(db: Database, environmentId: number, kind: KeyedKind): Promise<KeyedItem[]> {
  return db
    .selectFrom('keyed_items')
    .select(['key', 'display_name', 'data_type'])
    .where('environment_id', '=', environmentId)
    .where('kind', '=', kind)
    .orderBy('key')
    .execute();
}
