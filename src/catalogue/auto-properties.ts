import { entities } from '../domain/entity.ts';
import type { Database } from '../postgres/database.ts';
import { displayName } from './display-name.ts';

/** Columns of the profile tables that are listed as properties beside those that data brings. */
const autoProperties = ['first_seen_at', 'last_seen_at'];

/** To be called in the transaction that makes the environment. */
export async function addAutoProperties(db: Database, environmentId: number): Promise<void> {
  const rows = entities.flatMap((entity) =>
    autoProperties.map((key) => ({
      environment_id: environmentId,
      entity,
      key,
      display_name: displayName(key),
      data_type: 'date',
      is_auto_property: true,
    })),
  );
  await db.insertInto('properties').values(rows).execute();
}
