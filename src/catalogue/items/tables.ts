import type { Database } from '../../postgres/database.ts';
import { embedsTable } from './embeds-table.ts';
import type { ItemTable } from './item-table.ts';
import type { CatalogueItems, ItemOf, Kind, StoredItems, StoredOf } from './items.ts';
import { keyedItemsOf } from './keyed-items-table.ts';
import { retentionTable } from './retention-table.ts';
import { segmentsTable } from './segments-table.ts';
import { surveysTable } from './surveys-table.ts';

export const tables: { readonly [K in Kind]: ItemTable<ItemOf<K>, StoredOf<K>> } = {
  segments: segmentsTable,
  surveys: surveysTable,
  embeds: embedsTable,
  resource_center_modules: keyedItemsOf('resource_center_modules'),
  checklists: keyedItemsOf('checklists'),
  features: keyedItemsOf('features'),
  event_retention: retentionTable,
};

/** Everything that is defined for an environment, as of one moment. */
export function readCatalogue(db: Database, environmentId: number): Promise<StoredItems> {
  return db
    .transaction()
    .setIsolationLevel('repeatable read')
    .execute((transaction) => readItems(transaction, environmentId));
}

/** To be called where nobody else writes meanwhile. */
export async function readItems(db: Database, environmentId: number): Promise<StoredItems> {
  return {
    segments: await tables.segments.read(db, environmentId),
    surveys: await tables.surveys.read(db, environmentId),
    embeds: await tables.embeds.read(db, environmentId),
    resource_center_modules: await tables.resource_center_modules.read(db, environmentId),
    checklists: await tables.checklists.read(db, environmentId),
    features: await tables.features.read(db, environmentId),
    event_retention: await tables.event_retention.read(db, environmentId),
  };
}

/** The same as a file has it. */
export function withoutIds(stored: StoredItems): CatalogueItems {
  return {
    segments: stored.segments.map(tables.segments.toItem),
    surveys: stored.surveys.map(tables.surveys.toItem),
    embeds: stored.embeds.map(tables.embeds.toItem),
    resource_center_modules: stored.resource_center_modules,
    checklists: stored.checklists,
    features: stored.features,
    event_retention: stored.event_retention,
  };
}
