import { sql } from 'kysely';
import { MAX_CATALOGUED_NAMES } from '../domain/limits.ts';
import type { Database } from '../postgres/database.ts';
import type { HeldName } from './known-names.ts';
import type { NameTable, WantedName } from './name-table.ts';

/** `sluice.event_names`: names without a type. */
export const eventNames: NameTable = { write: writeEventNames, readAll: readEventNames };

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
      select ${MAX_CATALOGUED_NAMES}::bigint - count(*) as places
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
  return rows.map(({ name }) => toHeldName(name));
}

async function readEventNames(db: Database, environmentId: number): Promise<HeldName[]> {
  const rows = await db
    .selectFrom('event_names')
    .select('event_name')
    .where('environment_id', '=', environmentId)
    .execute();
  return rows.map((row) => toHeldName(row.event_name));
}

function toHeldName(name: string): HeldName {
  return { name, type: 'string' };
}
