import type { DataType } from '../../domain/data-type.ts';
import type { Entity } from '../../domain/entity.ts';
import type { Database } from '../../postgres/database.ts';

export interface ListedProperty {
  readonly id: number;
  readonly key: string;
  readonly display_name: string;
  readonly data_type: DataType;
  readonly is_auto_property: boolean;
}

/** Every property that users or companies of the environment have had, by key. */
export async function listProperties(
  db: Database,
  environmentId: number,
  entity: Entity,
): Promise<ListedProperty[]> {
  const rows = await db
    .selectFrom('properties')
    .select(['property_id as id', 'key', 'display_name', 'data_type', 'is_auto_property'])
    .where('environment_id', '=', environmentId)
    .where('entity', '=', entity)
    .orderBy('key')
    .execute();
  // A check constraint knows the same types.
  return rows.map((row) => ({ ...row, data_type: row.data_type as DataType }));
}
