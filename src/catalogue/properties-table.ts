import { sql } from 'kysely';
import type { DataType } from '../domain/data-type.ts';
import type { Entity } from '../domain/entity.ts';
import { MAX_CATALOGUED_NAMES } from '../domain/limits.ts';
import type { Database } from '../postgres/database.ts';
import { displayName } from './display-name.ts';
import type { HeldName } from './known-names.ts';
import type { NameTable, WantedName } from './name-table.ts';

/** `sluice.properties`, as far as it is about one entity. */
export function propertiesOf(entity: Entity): NameTable {
  return {
    write: (db, environmentId, names) => writeProperties(db, environmentId, entity, names),
    readAll: (db, environmentId) => readProperties(db, environmentId, entity),
  };
}

/**
 * Those that are there and need no change are sorted out before the insert: ON CONFLICT would lock their rows, and draw a
 * property_id for each. It is left to deal with what other sessions add or widen meanwhile.
 */
async function writeProperties(
  db: Database,
  environmentId: number,
  entity: Entity,
  names: readonly WantedName[],
): Promise<HeldName[]> {
  const keys = names.map(({ name }) => name);
  const shown = keys.map(displayName);
  const types = names.map(({ type }) => type);
  const { rows } = await sql<HeldProperty>`
    with wanted as (
      select
        w.key,
        w.display_name,
        w.data_type,
        p.data_type as held_type,
        p.is_auto_property,
        not p.is_auto_property and p.data_type <> 'string' and p.data_type <> w.data_type as widens,
        row_number() over (partition by p.key is null order by w.key collate "C") as place
      from unnest(${keys}::text[], ${shown}::text[], ${types}::text[]) w (key, display_name, data_type)
      left join properties p
        on p.environment_id = ${environmentId} and p.entity = ${entity} and p.key = w.key
    ),
    room as (
      select ${MAX_CATALOGUED_NAMES}::bigint - count(*) as places
      from properties
      where environment_id = ${environmentId} and entity = ${entity}
    ),
    written as (
      insert into properties as held (environment_id, entity, key, display_name, data_type)
      select ${environmentId}::int, ${entity}::text, w.key, w.display_name, coalesce(w.data_type, 'string')
      from wanted w
      cross join room
      where w.widens or w.held_type is null and w.place <= room.places
      order by w.key collate "C"
      on conflict (environment_id, entity, key) do update set data_type = 'string'
      where not held.is_auto_property and held.data_type <> 'string' and held.data_type <> excluded.data_type
      returning held.key, held.data_type
    )
    select
      w.key,
      case when w.widens then 'string' else coalesce(w.held_type, n.data_type) end as data_type,
      coalesce(w.is_auto_property, false) as is_auto_property
    from wanted w
    left join written n on n.key = w.key
    where w.held_type is not null or n.key is not null`.execute(db);
  return rows.map(toHeldName);
}

async function readProperties(db: Database, environmentId: number, entity: Entity): Promise<HeldName[]> {
  const rows = await db
    .selectFrom('properties')
    .select(['key', 'data_type', 'is_auto_property'])
    .where('environment_id', '=', environmentId)
    .where('entity', '=', entity)
    .execute();
  // The table's check constraint knows the same types.
  return rows.map((row) => toHeldName(row as HeldProperty));
}

interface HeldProperty {
  readonly key: string;
  readonly data_type: DataType;
  readonly is_auto_property: boolean;
}

function toHeldName(row: HeldProperty): HeldName {
  return { name: row.key, type: row.is_auto_property ? 'string' : row.data_type };
}
