/** The SQL of what the data has shown: `sluice.properties` and `sluice.event_names`. */
import { sql } from 'kysely';
import type { DataType } from '../../domain/data-type.ts';
import { displayName } from '../../domain/definitions.ts';
import { entities, type PropertyEntity } from '../../domain/entity.ts';
import { MAX_LISTED_NAMES } from '../../domain/limits.ts';
import type { Database } from '../database.ts';

export interface HeldName {
  readonly name: string;
  readonly type: DataType;
}

/** A name to be listed. A type of `null` means `string` for a new name, and nothing for a known one. */
export interface WantedName {
  readonly name: string;
  readonly type: DataType | null;
}

export interface NamesOf {
  /**
   * Adds the names that are not there while there is room, and widens types, in one statement and in the order of the
   * names. Returns which of them are there then; one that another session adds at that moment may be missing.
   */
  write(db: Database, environmentId: number, names: readonly WantedName[]): Promise<HeldName[]>;
  readAll(db: Database, environmentId: number): Promise<HeldName[]>;
}

/** `sluice.properties`, as far as it is about one entity. */
export function propertiesOf(entity: PropertyEntity): NamesOf {
  return {
    write: (db, environmentId, names) => writeProperties(db, environmentId, entity, names),
    readAll: (db, environmentId) => readProperties(db, environmentId, entity),
  };
}

/**
 * Names that are there and need no change are sorted out before the insert: ON CONFLICT would lock their rows, and draw a
 * property_id for each. It is left to deal with what other sessions add or widen meanwhile.
 */
async function writeProperties(
  db: Database,
  environmentId: number,
  entity: PropertyEntity,
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
  return rows.map(heldProperty);
}

async function readProperties(
  db: Database,
  environmentId: number,
  entity: PropertyEntity,
): Promise<HeldName[]> {
  const rows = await db
    .selectFrom('properties')
    .select(['key', 'data_type', 'is_auto_property'])
    .where((eb) => eb.and({ environment_id: environmentId, entity }))
    .execute();
  return rows.map(heldProperty);
}

interface HeldProperty {
  readonly key: string;
  readonly data_type: DataType;
  readonly is_auto_property: boolean;
}

function heldProperty(row: HeldProperty): HeldName {
  return { name: row.key, type: row.is_auto_property ? 'string' : row.data_type };
}

/** `sluice.event_names`: names without a type. */
export const eventNames: NamesOf = { write: writeEventNames, readAll: readEventNames };

async function writeEventNames(
  db: Database,
  environmentId: number,
  names: readonly WantedName[],
): Promise<HeldName[]> {
  const { rows } = await sql<{ name: string }>`
    with wanted as (
      select
        w.name,
        e.event_name is not null as is_held,
        row_number() over (partition by e.event_name is null order by w.name collate "C") as place
      from unnest(${names.map(({ name }) => name)}::text[]) w (name)
      left join event_names e on e.environment_id = ${environmentId} and e.event_name = w.name
    ),
    room as (
      select ${MAX_LISTED_NAMES}::bigint - count(*) as places
      from event_names
      where environment_id = ${environmentId}
    ),
    written as (
      insert into event_names (environment_id, event_name)
      select ${environmentId}::int, w.name
      from wanted w
      cross join room
      where not w.is_held and w.place <= room.places
      order by w.name collate "C"
      on conflict do nothing
      returning event_name
    )
    select w.name
    from wanted w
    left join written n on n.event_name = w.name
    where w.is_held or n.event_name is not null`.execute(db);
  return rows.map(({ name }) => heldEventName(name));
}

async function readEventNames(db: Database, environmentId: number): Promise<HeldName[]> {
  const rows = await db
    .selectFrom('event_names')
    .select('event_name')
    .where('environment_id', '=', environmentId)
    .execute();
  return rows.map((row) => heldEventName(row.event_name));
}

function heldEventName(name: string): HeldName {
  return { name, type: 'string' };
}

const autoProperties = ['first_seen_at', 'last_seen_at'];

/** Lists the columns of the profile tables as properties. Call it in the transaction that makes the environment. */
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

/** Lists every property that users, companies or events of the environment have had, by key. */
export function listProperties(db: Database, environmentId: number, entity: PropertyEntity) {
  return db
    .selectFrom('properties')
    .select(['property_id as id', 'key', 'display_name', 'data_type', 'is_auto_property'])
    .where((eb) => eb.and({ environment_id: environmentId, entity }))
    .orderBy('key')
    .execute();
}
