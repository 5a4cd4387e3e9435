-- Values that the rules of an environment allow one profile only. A profile claims a value in the transaction that gives it to it. A claim
-- counts while its owner has the value: whoever meets one looks, so removals and changes of values need not come here.

create table sluice.unique_values (
  environment_id integer not null,
  entity sluice.entity not null,
  value_hash uuid not null,
  owner text collate "C" not null,
  is_shared boolean not null default false,
  constraint unique_values_pkey primary key (environment_id, value_hash)
);
comment on table sluice.unique_values is
  'Who claims which value of a unique property. Deleting a person or a company deletes its claims; that reads them all, since an index of owners would double what a claim costs.';
comment on column sluice.unique_values.value_hash is 'sluice.value_hash(entity, property, value).';
comment on column sluice.unique_values.owner is 'The id of the user or company. Of a user who became an alias, the person counts too. Empty: a deleted one.';
comment on column sluice.unique_values.is_shared is 'Other profiles had the value too, and may have it still.';

-- Equal values have equal hashes: 1.0 is 1. Not strict, so that statements take it in.
create function sluice.value_hash(entity sluice.entity, property text, value jsonb) returns uuid
  language sql stable parallel safe
  return encode(
    substr(
      sha256(
        convert_to(
          entity || ' ' || length(property) || ' ' || property || case jsonb_typeof(value)
            when 'number' then trim_scale((value #>> '{}')::numeric)::text
            else value::text
          end,
          'UTF8'
        )
      ),
      1,
      16
    ),
    'hex'
  )::uuid;

-- Claims values for profiles that have them now, and returns those that others have, with all ids of the profile. Of profiles that want
-- one value, the first in the arrays gets it. What a profile does not have, since its record is `dated` and something newer was stored,
-- is not claimed.
--
-- Volatile PL/pgSQL, because each statement must see what was committed while the one before it waited: the first makes claims that are
-- new, the second locks those that are not, the third looks whether their owners still have the values. All in the order of the
-- claims, after the profiles were written: two writers never wait for each other crosswise.
create function sluice.claim_values(environment integer, of sluice.entity, keys text[], properties text[], held jsonb[], dated boolean)
returns table (key text, property text, value jsonb, ids text[])
language plpgsql volatile strict
as $$
#variable_conflict use_column
declare
  id constant text := case of when 'users' then 'user_id' else 'company_id' end;
  met_keys text[];
  met_properties text[];
  met_values jsonb[];
  hashes uuid[];
  locked integer;
  some_shared boolean;
begin
  loop
    execute format(
      $sql$
        with claims as materialized (
          select c.*, sluice.value_hash($2, c.property, c.value) as hash
          from unnest($3, $4, $5) with ordinality as c (key, property, value, place)
          where not $6 or (
            select p.metadata -> c.property = c.value
            from sluice.%1$I p
            where p.environment_id = $1 and p.%2$I = c.key
          )
        ),
        made as (
          insert into sluice.unique_values (environment_id, entity, value_hash, owner)
          select $1, $2, f.hash, f.key
          from (select distinct on (hash) * from claims order by hash, place) f
          order by f.hash
          on conflict do nothing
          returning value_hash, owner
        )
        select array_agg(key), array_agg(property), array_agg(value), array_agg(hash)
        from (
          select c.*
          from claims c
          left join made m on m.value_hash = c.hash and m.owner = c.key
          where m.owner is null
          order by c.hash, c.place
        ) met
      $sql$,
      of, id
    ) into met_keys, met_properties, met_values, hashes using environment, of, keys, properties, held, dated;
    if met_keys is null then
      return;
    end if;
    select count(*), bool_or(is_shared) into locked, some_shared
    from unnest(hashes) as m (hash)
    cross join lateral (
      select v.is_shared
      from sluice.unique_values v
      where v.environment_id = environment and v.value_hash = m.hash
      for no key update
    ) l;
    -- A deletion took a claim away in between.
    exit when locked = cardinality(met_keys);
  end loop;
  -- Where the owner gave up a value that several had, another of them owns it. Seldom, so that reading all profiles will do.
  if some_shared then
    execute format(
      $sql$
        update sluice.unique_values v
        set owner = h.id
        from (
          select distinct on (m.hash) m.hash, p.%2$I as id
          from (
            select array_agg(m.key) as keys, m.property, m.value, m.hash
            from unnest($3, $4, $5, $6) as m (key, property, value, hash)
            join sluice.unique_values s on s.environment_id = $1 and s.value_hash = m.hash and s.is_shared
            where not exists (
              select 1
              from sluice.%1$I o
              where o.environment_id = $1 and o.metadata -> m.property = m.value
                and o.%2$I in (s.owner, case $2 when 'users' then sluice.person_of($1, s.owner) else s.owner end)
            )
            group by m.property, m.value, m.hash
          ) m
          join sluice.%1$I p on p.environment_id = $1 and p.metadata -> m.property = m.value
          where p.%2$I <> all (m.keys)
          order by m.hash, p.%2$I
        ) h
        where v.environment_id = $1 and v.value_hash = h.hash
      $sql$,
      of, id
    ) using environment, of, met_keys, met_properties, met_values, hashes;
  end if;
  return query execute format(
    $sql$
      with met as materialized (
        select
          c.*, o.owner, o.person,
          exists (
            select 1
            from sluice.%1$I p
            where p.environment_id = $1 and p.%2$I in (o.owner, o.person) and p.metadata -> c.property = c.value
          ) as is_held
        from unnest($3, $4, $5, $6) with ordinality as c (key, property, value, hash, place)
        cross join lateral (
          select v.owner, case $2 when 'users' then sluice.person_of($1, v.owner) else v.owner end as person
          from sluice.unique_values v
          where v.environment_id = $1 and v.value_hash = c.hash
          limit 1
        ) o
      ),
      given as (
        select distinct on (hash) hash, key
        from met
        where not is_held
        order by hash, place
      ),
      moved as (
        update sluice.unique_values v
        set owner = g.key, is_shared = false
        from given g
        where v.environment_id = $1 and v.value_hash = g.hash
      )
      select
        m.key, m.property, m.value,
        m.key || array(select a.alias from sluice.aliases a where $2 = 'users' and a.environment_id = $1 and a.user_id = m.key)
      from met m
      left join given g using (hash, key)
      where g.key is null and m.key not in (m.owner, m.person)
      order by m.place
    $sql$,
    of, id
  ) using environment, of, met_keys, met_properties, met_values, hashes;
end
$$;
