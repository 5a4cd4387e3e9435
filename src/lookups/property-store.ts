/** SQL for `sluice.properties`, which also contains event names, under an entity of their own. */
import { sql } from 'kysely';
import { MAX_LISTED_NAMES } from '../base/limits.ts';
import type { DataType } from '../domain/data-type.ts';
import { displayName } from '../domain/definitions.ts';
import type { NameKind, PropertyEntity } from '../domain/entity.ts';
import { type Database, selectWhere } from '../postgres/database.ts';
import type { PageQuery } from './segment-store.ts';

/** If the type is `null`, a new name gets the type `string`, and a stored name keeps its type. */
export interface TypedName<Type = DataType> {
  readonly name: string;
  readonly type: Type;
}

/**
 * Adds names until the list is full, and widens types. Returns stored names, except those that
 * another session is adding. Unchanged names are not inserted: ON CONFLICT would lock their rows
 * and use up ids.
 */
export async function writeNames(
  db: Database,
  environmentId: number,
  entity: NameKind,
  names: readonly TypedName<DataType | null>[],
): Promise<TypedName[]> {
  const keys = names.map(({ name }) => name);
  const shown = keys.map(displayName);
  const types = names.map(({ type }) => type);
  const { rows } = await sql<HeldName>`
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
      select ${MAX_LISTED_NAMES}::bigint - count(*) as places
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
  return rows.map(heldName);
}

export async function readNames(db: Database, environmentId: number, entity: NameKind): Promise<TypedName[]> {
  const rows = await selectWhere(db, 'properties', { environmentId, entity })
    .select(['key', 'data_type', 'is_auto_property'])
    .execute();
  return rows.map(heldName);
}

interface HeldName {
  readonly key: string;
  readonly data_type: DataType;
  readonly is_auto_property: boolean;
}

function heldName(row: HeldName): TypedName {
  return { name: row.key, type: row.is_auto_property ? 'string' : row.data_type };
}

const selectProperties = (db: Database, environmentId: number, entity: PropertyEntity) =>
  selectWhere(db, 'properties', { environmentId, entity }).select([
    'property_id as id',
    'key',
    'display_name',
    'data_type',
    'is_auto_property',
  ]);

export function listProperties(db: Database, environmentId: number, entity: PropertyEntity) {
  return selectProperties(db, environmentId, entity).orderBy('key').execute();
}

/**
 * Returns a page after or before a key. Properties are never removed, so a page before a key is
 * never the last page.
 */
export async function pageProperties(
  db: Database,
  environmentId: number,
  entity: PropertyEntity,
  { limit, after, before, offset }: PageQuery<string>,
) {
  const rows = await selectProperties(db, environmentId, entity)
    .$if(after !== null, (all) => all.where('key', '>', after))
    .$if(before !== null, (all) => all.where('key', '<', before))
    .orderBy('key', before === null ? 'asc' : 'desc')
    .limit(limit + 1)
    .offset(offset)
    .execute();
  const hasMore = rows.length > limit;
  const page = rows.slice(0, limit);
  const items = before === null ? page : page.reverse();
  const { total } = await selectWhere(db, 'properties', { environmentId, entity })
    .select(({ fn }) => fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow();
  const hasBefore = before === null ? after !== null || offset > 0 : hasMore;
  const hasAfter = before === null ? hasMore : true;
  return { items, total, hasBefore, hasAfter };
}
