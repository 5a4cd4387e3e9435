import type { Database } from '../../postgres/database.ts';
import { displayName } from '../display-name.ts';
import type { KeyedItem } from '../items/items.ts';
import { tables } from '../items/tables.ts';

/**
 * The features that were defined, and every name that an event was tracked under, by key. An event with a feature's key
 * is that feature: the operator's words for it count.
 */
export async function listFeaturesAndEvents(db: Database, environmentId: number): Promise<KeyedItem[]> {
  const features = await tables.features.read(db, environmentId);
  const events = await db
    .selectFrom('event_names')
    .select('event_name as key')
    .where('environment_id', '=', environmentId)
    .execute();
  const items = new Map<string, KeyedItem>();
  for (const { key } of events) items.set(key, { key, display_name: displayName(key), data_type: 'event' });
  for (const feature of features) items.set(feature.key, feature);
  return [...items.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
}
