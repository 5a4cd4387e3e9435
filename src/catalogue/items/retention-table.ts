import { sql } from 'kysely';
import type { ItemTable } from './item-table.ts';
import type { RetentionItem } from './items.ts';

/** `sluice.event_retention` */
export const retentionTable: ItemTable<RetentionItem> = {
  read: (db, environmentId) =>
    db
      .selectFrom('event_retention')
      .select(['key', 'days'])
      .where('environment_id', '=', environmentId)
      .orderBy('key')
      .execute(),
  toItem: (item) => item,
  async add(db, environmentId, items) {
    await db
      .insertInto('event_retention')
      .values(items.map((item) => ({ environment_id: environmentId, ...item })))
      .execute();
  },
  async change(db, environmentId, { key, days }) {
    await db
      .updateTable('event_retention')
      .set({ days })
      .where('environment_id', '=', environmentId)
      .where('key', '=', key)
      .execute();
  },
  async remove(db, environmentId, keys) {
    await db
      .deleteFrom('event_retention')
      .where('environment_id', '=', environmentId)
      .where('key', '=', sql<string>`any(${keys}::text[])`)
      .execute();
  },
};
