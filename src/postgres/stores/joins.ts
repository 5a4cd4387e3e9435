import { type RawBuilder, sql } from 'kysely';
import { columnOf, type Database } from '../database.ts';
import { removedEvents } from '../merge/patch-lines.ts';

/*
 * A join moves what is stored under aliases to their persons, as a patch (`../merge/put-back.ts`): the profile of an alias is removed and
 * fills in what the person's lacks; each of its events moves. Its own selects are text, because COPY takes no parameters.
 */

/** Claims the aliases of joins that did not complete, too. Returns `false` if the load is no join. */
export async function claimAliases(db: Database, loadId: number): Promise<boolean> {
  const { rows } = await sql<{ environmentId: number }>`
    select environment_id as "environmentId"
    from loads
    where load_id = ${loadId} and type = 'join'`.execute(db);
  const [load] = rows;
  if (load === undefined) return false;
  await lockAliases(db, load.environmentId);
  await sql`
    update aliases
    set load_id = ${loadId}
    where environment_id = ${load.environmentId}
      and load_id in (
        select load_id
        from loads
        where environment_id = ${load.environmentId} and type = 'join' and status in ('failed', 'cancelled')
      )`.execute(db);
  return true;
}

/** Serialises decisions about the aliases of one environment; the class half of a two-key advisory lock. */
const aliasLock = 0x414c4941;

export async function lockAliases(db: Database, environmentId: number): Promise<void> {
  await sql`select pg_advisory_xact_lock(${aliasLock}, ${environmentId})`.execute(db);
}

/** Lists the transactions that may have looked up aliases and still write what they found; of `among`, if given, those that are left. */
export function readersOfAliases(db: Database, among: readonly string[] | null = null): Promise<string[]> {
  return columnOf<string>(db)`
    select virtualtransaction as id
    from pg_locks
    where locktype = 'relation' and mode = 'RowShareLock' and relation = 'aliases'::regclass
      and database = (select oid from pg_database where datname = current_database())
      and (${among}::text[] is null or virtualtransaction = any(${among}::text[]))`;
}

/**
 * The aliases of a join, each with the user whom it was given to. If this one has become an alias by the same join, it is that one's;
 * by a later join, that one moves all.
 */
const joined = (loadId: number) => sql`(
  with recursive joined as (
    select a.environment_id, a.alias, a.given_to as person
    from aliases a
    where a.load_id = ${sql.raw(String(loadId))}
    union all
    select j.environment_id, j.alias, a.given_to
    from joined j
    join aliases a on a.environment_id = j.environment_id and a.alias = j.person and a.load_id = ${sql.raw(String(loadId))}
  )
  select *
  from joined j
  where not exists (
    select 1
    from aliases a
    where a.environment_id = j.environment_id and a.alias = j.person and a.load_id = ${sql.raw(String(loadId))}
  )
)`;

const profiles = (loadId: number) => sql`
  select a.person, u.user_id as alias, u.metadata, u.times, u.company_id, u.first_seen_at, u.last_seen_at, u.position,
    coalesce(u.times ? 'dated', false) as is_dated,
    -- Before all that has a time: it only fills in. Among several aliases the one that was seen last wins.
    sluice.micros(u.last_seen_at) - 100000000000000000 as filling
  from ${joined(loadId)} a
  join users u on u.environment_id = a.environment_id and u.user_id = a.alias`;

/** Lines that lay under each person what its aliases have. */
export function filledProfiles(loadId: number): RawBuilder<unknown> {
  return sql`
    with moved as materialized (${profiles(loadId)}),
    best as (
      select distinct on (person, name) person, name, value, at
      from (
        select m.person, m.alias, p.key as name, p.value,
          coalesce(case when m.is_dated then (m.times -> 'properties' -> p.key)::bigint end, m.filling) as at
        from moved m
        cross join lateral jsonb_each(m.metadata) p
      ) v
      order by person, name, at desc, alias
    ),
    properties as (
      select person, jsonb_object_agg(name, value) as metadata, jsonb_object_agg(name, at) as times
      from best
      group by person
    ),
    companies as (
      select distinct on (person) person, company_id, at
      from (
        select *, coalesce(case when is_dated then (times -> 'company')::bigint end, filling) as at
        from moved
        where company_id is not null
      ) m
      order by person, at desc, alias
    )
    select json_build_object(
      'entity', 'users',
      'id', s.person,
      'filled', true,
      'metadata', coalesce(p.metadata, '{}'),
      'times', jsonb_build_object('base', s.base, 'properties', coalesce(p.times, '{}'))
        || case when c.at is null then '{}' else jsonb_build_object('company', c.at) end
        || case when s.is_dated then '{"dated": true}'::jsonb else '{}' end,
      'company', c.company_id,
      'first_seen_at', s.first_seen_at,
      'last_seen_at', s.last_seen_at
    )::text
    from (
      select person, min(first_seen_at) as first_seen_at, max(last_seen_at) as last_seen_at,
        sluice.micros(max(last_seen_at)) as base, bool_or(is_dated) as is_dated
      from moved
      group by person
    ) s
    left join properties p using (person)
    left join companies c using (person)
    order by s.person`;
}

/** Lines that remove the profiles of aliases. */
export function joinedProfiles(loadId: number): RawBuilder<unknown> {
  return sql`
    select '{"entity":"users","id":' || to_json(alias)::text || ',"position":' || position || ',"removed":true}'
    from (${profiles(loadId)}) p
    order by alias`;
}

/** Lines that move the events of aliases. */
export function joinedEvents(loadId: number): RawBuilder<unknown> {
  const events = sql`${joined(loadId)} a join events e on e.environment_id = a.environment_id and e.user_id = a.alias`;
  return removedEvents(events, sql`'"to":' || to_json(a.person)::text || ','`);
}

/** Takes away the aliases of the joins that an undo undoes; aliases that had come along go back to them. */
export async function takeAliasesAway(db: Database, undoId: number): Promise<void> {
  const { rows } = await sql<{ alias: string; environmentId: number }>`
    delete from aliases a
    using loads u
    where u.load_id = ${undoId} and u.undo_properties is null and a.environment_id = u.environment_id
      and a.load_id = any(u.undoes)
    returning a.alias, a.environment_id as "environmentId"`.execute(db);
  if (rows.length === 0) return;
  await sql`
    with recursive below as (
      select a.alias, a.given_to as person
      from aliases a
      where a.environment_id = ${rows[0]?.environmentId} and a.given_to = any(${rows.map(({ alias }) => alias)}::text[])
      union all
      select a.alias, b.person
      from below b
      join aliases a on a.environment_id = ${rows[0]?.environmentId} and a.given_to = b.alias
    )
    update aliases a
    set user_id = b.person
    from below b
    where a.environment_id = ${rows[0]?.environmentId} and a.alias = b.alias`.execute(db);
}
