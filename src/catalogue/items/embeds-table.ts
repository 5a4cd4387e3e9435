import { sql } from 'kysely';
import type { Database } from '../../postgres/database.ts';
import type { ItemTable } from './item-table.ts';
import type { EmbedItem, EmbedType, StoredEmbed } from './items.ts';

/** `sluice.embeds` */
export const embedsTable: ItemTable<EmbedItem, StoredEmbed> = { read, toItem, add, change, remove };

async function read(db: Database, environmentId: number): Promise<StoredEmbed[]> {
  const rows = await db
    .selectFrom('embeds')
    .select(['embed_id as id', 'key', 'title', 'type'])
    .where('environment_id', '=', environmentId)
    .orderBy('embed_id')
    .execute();
  // A check constraint knows the same types.
  return rows.map((row) => ({ ...row, type: row.type as EmbedType }));
}

function toItem({ id: _, ...item }: StoredEmbed): EmbedItem {
  return item;
}

async function add(db: Database, environmentId: number, items: readonly EmbedItem[]): Promise<void> {
  await db
    .insertInto('embeds')
    .values(items.map((item) => ({ environment_id: environmentId, ...item })))
    .execute();
}

async function change(db: Database, environmentId: number, item: EmbedItem): Promise<void> {
  await db
    .updateTable('embeds')
    .set({ ...item, updated_at: sql`now()` })
    .where('environment_id', '=', environmentId)
    .where('key', '=', item.key)
    .execute();
}

async function remove(db: Database, environmentId: number, keys: readonly string[]): Promise<void> {
  await db
    .deleteFrom('embeds')
    .where('environment_id', '=', environmentId)
    .where('key', '=', sql<string>`any(${keys}::text[])`)
    .execute();
}
