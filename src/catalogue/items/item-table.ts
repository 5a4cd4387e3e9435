import type { Database } from '../../postgres/database.ts';

/** Where the items of one kind are kept. */
export interface ItemTable<Item, StoredItem = Item> {
  /** In an order that does not change: by id, or by key where there is none. */
  read(db: Database, environmentId: number): Promise<StoredItem[]>;
  /** As a file would have it: without ids. */
  toItem(stored: StoredItem): Item;
  add(db: Database, environmentId: number, items: readonly Item[]): Promise<void>;
  /** Makes the item of that key this. */
  change(db: Database, environmentId: number, item: Item): Promise<void>;
  remove(db: Database, environmentId: number, keys: readonly string[]): Promise<void>;
}
