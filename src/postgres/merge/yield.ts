/*
 * An amendment yields: its records count as if they stood at the end of its parent's file, so whatever changed since stays. What changed
 * is in the log (`sluice.changes`) and in the rows themselves. Changes by the parent, its other amendments and undos of these do not
 * count.
 */
import { type RawBuilder, sql } from 'kysely';
import { type Entity, idColumn } from '../../domain/entity.ts';
import { TransientError } from '../../domain/errors.ts';
import { type Database, rowOf } from '../database.ts';
import { isKey } from '../stores/change-log.ts';
import {
  incomingTable,
  type MergeScope,
  notedDropped,
  nothingUnchanged,
  type Unchanged,
  type Yields,
} from './incoming.ts';

export interface Yielded extends Unchanged {
  /** A cursor: what had been committed when the changes were looked at. */
  readonly seen: string | null;
}

/**
 * Takes out of the batch of an amendment what changed since its parent ended. Rows of which nothing is left go, and count as unchanged.
 * Locks the profiles first: what is written later waits for our commit, except a profile that is made meanwhile (`requireSeen`).
 */
export async function yieldToChanges(db: Database, entity: Entity, scope: MergeScope): Promise<Yielded> {
  const { yields } = scope;
  if (yields === null) return { ...nothingUnchanged, seen: null };
  const incoming = sql.table(incomingTable[entity]);
  const profile = sql.ref(`p.${idColumn[entity]}`);
  await sql`
    select 1
    from ${sql.table(entity)} p
    where p.environment_id = ${scope.environmentId} and ${profile} = any (array(select key from ${incoming}))
    order by ${profile}
    for no key update`.execute(db);
  return rowOf<Yielded>(db)`
    with ${changedSince(entity, scope, yields)},
    rest as (
      select i.key, i.properties - c.names as properties, case when not c.moved then i.company end as company, c.removed
      from ${incoming} i
      join changed c using (key)
    ),
    dropped as (
      delete from ${incoming} i
      using rest r
      where r.key = i.key and (r.removed or (r.properties = '{}' and r.company is null))
      returning i.key, i.flags
    ),
    cut as (
      update ${incoming} i
      set properties = r.properties, company = r.company, digest = null
      from rest r
      where r.key = i.key and not (r.removed or (r.properties = '{}' and r.company is null))
    )
    ${scope.keepKeys ? notedDropped(entity, scope) : sql``}
    select
      count(*)::int as rows,
      count(*) filter (where flags & 2 = 0)::int as counted,
      sluice.current_cursor() as seen
    from dropped`;
}

/**
 * Call it after the upsert.
 * @throws TransientError if the upsert changed a profile that `yieldToChanges` did not see: it was made meanwhile.
 */
export async function requireSeen(
  db: Database,
  entity: Entity,
  { environmentId }: MergeScope,
  { seen }: Yielded,
): Promise<void> {
  if (seen === null) return;
  const { rows } = await sql`
    select 1
    from ${sql.table(incomingTable[entity])} i
    join changes c on ${isKey('c.key', sql`i.key`)}
    where environment_id = ${environmentId}
      and entity = ${entity}
      and at = now()
      and position = sluice.current_position()
      and sluice.is_since(position_before, ${seen}::pg_snapshot)
    limit 1`.execute(db);
  if (rows.length > 0)
    throw new TransientError('a profile was made while an amendment looked at what had changed');
}

/**
 * Selects, as `changed`, the keys of the batch of which others changed something: the names of the properties, whether the company
 * changed, and whether the profile was removed. A property changed if two neighbouring states of the profile differ in it: those in the
 * log since, and what is stored. A profile that was made since had no properties before.
 */
function changedSince(
  entity: Entity,
  { environmentId }: MergeScope,
  { parentId, since }: Yields,
): RawBuilder<unknown> {
  const isSince = (position: string) => sql`sluice.is_since(${sql.ref(position)}, ${since}::pg_snapshot)`;
  const isOther = (load: string) => sql`(${sql.ref(load)} in (select load_id from own_loads)) is not true`;
  return sql`
    amendments as (
      select load_id
      from loads
      where amends = ${parentId} and not wins
    ),
    own_loads as (
      select ${parentId}::bigint as load_id
      union all
      select load_id
      from amendments
      union all
      select load_id
      from loads
      where environment_id = ${environmentId} and undoes <@ array(select load_id from amendments)
    ),
    states as (
      select i.key, s.*
      from ${sql.table(incomingTable[entity])} i
      cross join lateral (
        select c.seq, c.before as properties, c.company_before as company, c.position_before as position,
          c.load_before as maker, c.load_id as next_by, c.removed
        from changes c
        where c.environment_id = ${environmentId} and c.entity = ${entity} and ${isKey('c.key', sql`i.key`)} and ${isSince('c.position')}
        union all
        select null, p.metadata, ${entity === 'users' ? sql`p.company_id` : sql`null`}, p.position, p.load_id, null, false
        from ${sql.table(entity)} p
        where p.environment_id = ${environmentId} and p.${sql.ref(idColumn[entity])} = i.key and ${isSince('p.position')}
        offset 0
      ) s
    ),
    followed as (
      select *,
        lag(properties) over w as before,
        lag(company) over w as company_before,
        lag(next_by) over w as changed_by,
        coalesce(lag(removed) over w, ${isSince('position')}) as is_made,
        row_number() over w = 1 as is_first
      from states
      window w as (partition by key order by seq nulls last)
    ),
    steps as (
      select
        key, properties, company,
        case when not is_made then before end as before,
        case when not is_made then company_before end as company_before,
        removed and ${isOther('next_by')} as removed,
        case
          when is_made then ${isOther('maker')}
          else not is_first and ${isOther('changed_by')}
        end as is_change
      from followed
    ),
    changed as (
      select
        key,
        bool_or(removed) as removed,
        bool_or(is_change and company is distinct from company_before) as moved,
        coalesce(array_agg(name) filter (where name is not null), '{}') as names
      from steps s
      left join lateral (
        select coalesce(a.key, b.key) as name
        from jsonb_each(s.properties) a
        full join jsonb_each(s.before) b using (key)
        where a.value is distinct from b.value
      ) n on s.is_change
      group by s.key
      having bool_or(is_change or removed)
    )`;
}
