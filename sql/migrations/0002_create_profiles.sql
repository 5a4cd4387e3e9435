-- The profiles, as an analyst queries them.
--
-- load_id, load_chunk, load_touches say which load wrote the row last. They are how a load that runs in parallel
-- finds out that it met one key twice (see docs/architecture.md, "Last record wins"); records that come one by one
-- over HTTP leave them alone.
--
-- times says when what is stored was so, for records that come with a time of their own (docs/decisions/loading.md,
-- "Times of properties"). It is null until such a record, or a removal, touches the row.
--
-- digest is that of a record of a file, and says: laying this record over the row changes nothing. A load that brings the
-- record again need not look any closer (docs/decisions/loading.md, "Unchanged records").

-- Where in time a row was written: the id of the transaction. An export gets the rows at positions that an earlier snapshot does not
-- see, whichever transactions were open then. A restored database adds an offset (sluice.raise_positions), since positions never go
-- back. Stable, though it is a constant: sessions would go on with an immutable one after it was raised.
create function sluice.position_offset() returns bigint
  language sql stable parallel safe
  return 0::bigint;
create function sluice.current_position() returns bigint
  language sql stable
  return pg_current_xact_id()::text::bigint + sluice.position_offset();

create table sluice.users (
  environment_id integer not null,
  user_id text collate "C" not null,
  company_id text collate "C",
  metadata jsonb not null default '{}',
  first_seen_at timestamptz not null default now(),
  last_seen_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  load_id bigint,
  load_chunk integer,
  load_touches integer,
  times jsonb,
  digest uuid,
  position bigint not null default sluice.current_position(),
  constraint users_pkey primary key (environment_id, user_id),
  constraint users_times_check check (
    times is null
    or (jsonb_typeof(times -> 'base') = 'number' and jsonb_typeof(times -> 'properties') = 'object') is true
  )
);
comment on table sluice.users is 'One row per end user and environment.';
comment on column sluice.users.company_id is 'The one company the user belongs to now.';
comment on column sluice.users.metadata is 'Free-form properties; never holds a null at the top level.';
comment on column sluice.users.updated_at is 'The time of the last change; loads that bring nothing new do not touch it.';
comment on column sluice.users.load_id is 'The load that wrote the row last: sluice.loads.load_id.';
comment on column sluice.users.load_chunk is 'The highest chunk of that load that wrote the row.';
comment on column sluice.users.load_touches is 'The number of chunks of that load that wrote the row.';
comment on column sluice.users.times is
  '{"base", "company", "properties": {name: …}}, in microseconds since 1970: when they were set or removed; base: of those not named. "dated": by a record with a time. Null: last_seen_at, of all.';
comment on column sluice.users.position is 'The transaction that last changed the row; moves with updated_at.';
comment on column sluice.users.digest is 'The digest of a record whose content the row has; null if none is known.';

create table sluice.companies (
  environment_id integer not null,
  company_id text collate "C" not null,
  metadata jsonb not null default '{}',
  first_seen_at timestamptz not null default now(),
  last_seen_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  load_id bigint,
  load_chunk integer,
  load_touches integer,
  times jsonb,
  digest uuid,
  position bigint not null default sluice.current_position(),
  constraint companies_pkey primary key (environment_id, company_id),
  constraint companies_times_check check (
    times is null
    or (jsonb_typeof(times -> 'base') = 'number' and jsonb_typeof(times -> 'properties') = 'object') is true
  )
);
comment on table sluice.companies is 'One row per company (account) and environment.';

-- Whoever changes what a profile holds, an operator's own statement included, makes its digest void and moves its position and its
-- updated_at. A statement of a load moves its position itself, which is cheaper than this function.
create function sluice.note_change() returns trigger
  language plpgsql
as $$
begin
  if new.digest = old.digest then
    new.digest := null;
  end if;
  if new.position = old.position then
    new.position := sluice.current_position();
    new.updated_at := now();
  end if;
  return new;
end
$$;
-- A profile under a new key is a new one, which no load made.
create function sluice.note_key() returns trigger
  language plpgsql
as $$
begin
  new.position := sluice.current_position();
  new.load_id := null;
  return new;
end
$$;
create trigger users_note_change before update on sluice.users for each row
  when (
    (new.digest = old.digest or new.position = old.position)
    and (new.metadata is distinct from old.metadata or new.company_id is distinct from old.company_id)
  )
  execute function sluice.note_change();
create trigger users_note_key before update on sluice.users for each row
  when (new.user_id <> old.user_id or new.environment_id <> old.environment_id)
  execute function sluice.note_key();
create trigger companies_note_key before update on sluice.companies for each row
  when (new.company_id <> old.company_id or new.environment_id <> old.environment_id)
  execute function sluice.note_key();
create trigger companies_note_change before update on sluice.companies for each row
  when ((new.digest = old.digest or new.position = old.position) and new.metadata is distinct from old.metadata)
  execute function sluice.note_change();

-- What an export filters by. Block ranges for the times: a tree of them would have to be written at every change of a
-- row, which PostgreSQL could then no longer make in place.
create index users_company_idx on sluice.users (environment_id, company_id) where company_id is not null;
-- Until PostgreSQL 16 a column in a block-range index kept updates from being made in place (HOT).
do $$
begin
  if current_setting('server_version_num')::int >= 160000 then
    create index users_position_idx on sluice.users using brin (position, updated_at) with (autosummarize = on);
    create index companies_position_idx on sluice.companies using brin (position, updated_at) with (autosummarize = on);
  end if;
end
$$;

-- Removes the properties that a record sets to null. Top level only: a null inside a nested value is data.
create function sluice.without_nulls(properties jsonb) returns jsonb
  language sql immutable strict parallel safe
  return properties - array(
    select key
    from jsonb_each(properties)
    where value = 'null'::jsonb
  );

-- Companies that get something they do not have.
--
-- Volatile, so that it looks at what is committed when it is called, and not when the statement began that calls it: that one
-- may have waited for a user whom another server wrote together with its company (sql/queries/upsert-users.sql).
-- PL/pgSQL, because that keeps its plans for the session; strict, so that a statement without companies costs nothing.

create function sluice.companies_to_write(incoming json, removes boolean)
returns table (e integer, k text, p jsonb)
language plpgsql volatile strict
as $$
#variable_conflict use_column
begin
  return query
    with given as materialized (
      select i.e, i.k, i.p
      from json_to_recordset(incoming) as i (e integer, k text, p jsonb)
    ),
    known as (
      select g.e, g.k
      from given g
      join sluice.companies c on c.environment_id = g.e and c.company_id = g.k
      where case
        when removes then sluice.without_nulls(c.metadata || g.p) = c.metadata
        else c.metadata || g.p = c.metadata
      end
    )
    select g.e, g.k, g.p
    from given g
    where (g.e, g.k) not in (select n.e, n.k from known n);
end
$$;

-- Times of properties. An instant is kept as a number, because numbers compare the same in every session. Of an interval, because
-- what is extracted of an instant counts as depending on the session's zone, and what ON CONFLICT sets must be immutable to a
-- database on several servers.
create function sluice.micros(moment timestamptz) returns bigint
  language sql immutable strict parallel safe
  return (extract(epoch from moment - timestamptz '1970-01-01 00:00:00Z') * 1000000)::bigint;

-- The same time for each property; null if there is none.
create function sluice.times_of(properties jsonb, at bigint) returns jsonb
  language sql immutable parallel safe
  return (
    select jsonb_object_agg(name, at)
    from jsonb_object_keys(properties) name
  );

create aggregate sluice.merged_properties(jsonb) (sfunc = jsonb_concat, stype = jsonb, initcond = '{}');

-- What a record brings, without the removals of what nothing is known of: such a removal leaves no time, so that it makes no difference
-- whether it comes before or after the record that gives the profile its times.
create function sluice.known_properties(incoming jsonb, metadata jsonb, times jsonb) returns jsonb
  language sql immutable parallel safe
  return incoming - array(
    select i.key
    from jsonb_each(incoming) i
    where i.value = 'null'::jsonb and not metadata ? i.key and not coalesce(times -> 'properties' ? i.key, false)
  );

-- Times as a profile keeps them, of what records bring: `times` of their properties, `company_at` of their company. Null where
-- none is needed: all they bring is as of `accepted`, and removes nothing.
create function sluice.incoming_times(
  properties jsonb,
  times jsonb,
  company_id text,
  company_at bigint,
  is_dated boolean,
  accepted bigint
) returns jsonb
  language sql immutable parallel safe
  return case
    when (times = '{}' and company_at is null)
      or not (is_dated or (company_id = '') is true or properties <> sluice.without_nulls(properties))
    then null
    else jsonb_build_object('base', accepted, 'properties', times)
      || case when is_dated then '{"dated": true}'::jsonb else '{}' end
      || case when company_at is null then '{}' else jsonb_build_object('company', company_at) end
  end;

-- The times of a profile over which a record without a time is laid: all it brings is as of `at`. A profile without times
-- gets none, unless something is removed that was there: an older record must not bring it back.
create function sluice.touch_times(
  times jsonb,
  last_seen_at timestamptz,
  metadata jsonb,
  company_id text,
  incoming jsonb,
  incoming_company text,
  at timestamptz
) returns jsonb
  language sql immutable parallel safe
  return case
    when times is null
      and not (incoming_company = '' and company_id is not null) is true
      and not exists (
        select 1
        from jsonb_each(incoming) i
        where i.value = 'null'::jsonb and metadata ? i.key
      )
    then null
    else coalesce(times, jsonb_build_object('base', sluice.micros(last_seen_at)))
      || jsonb_build_object(
        'properties',
        coalesce(times -> 'properties', '{}')
          || coalesce(sluice.times_of(sluice.known_properties(incoming, metadata, times), sluice.micros(at)), '{}')
      )
      || case
        when incoming_company is null or (incoming_company = '' and company_id is null and not coalesce(times ? 'company', false)) then '{}'
        else jsonb_build_object('company', sluice.micros(at))
      end
  end;

-- Lays a dated record over a profile, property by property: what it brings counts unless something newer was stored.
-- incoming_times has the times of its properties, and of its company; what it does not name is as of `accepted`, and
-- counts whatever is stored, as does all that is as of `accepted`. A profile without times is as of last_seen_at; what it
-- lacks, nothing is known of, and any record may add it.
create function sluice.merge_dated(
  stored jsonb,
  stored_times jsonb,
  stored_company text,
  last_seen_at timestamptz,
  incoming jsonb,
  incoming_times jsonb,
  incoming_company text,
  accepted bigint
) returns table (merged jsonb, merged_times jsonb, merged_company text)
  language sql immutable rows 1 parallel safe
as $$
  select
    case
      when won.removes then sluice.without_nulls(stored || won.properties)
      else stored || won.properties
    end,
    case
      when stored_times is null and (incoming_times is null or (won.times = '{}' and not moved.leaves_time)) then null
      else coalesce(stored_times, jsonb_build_object('base', known.base))
        || jsonb_build_object('properties', coalesce(stored_times -> 'properties', '{}') || won.times)
        || case when moved.leaves_time then jsonb_build_object('company', moved.at) else '{}' end
        || case when incoming_times ? 'dated' and (won.times <> '{}' or moved.leaves_time) then '{"dated": true}'::jsonb else '{}' end
    end,
    case when moved.counts then nullif(incoming_company, '') else stored_company end
  from (
    select
      b.base,
      coalesce((incoming_times -> 'company')::bigint, accepted) as company_at,
      coalesce((stored_times -> 'company')::bigint, case when stored_company is not null then b.base end) as stored_company_at
    from (select coalesce((stored_times -> 'base')::bigint, sluice.micros(last_seen_at)) as base) b
  ) known
  cross join lateral (
    select
      c.at,
      coalesce(c.counts, false) as counts,
      coalesce(
        c.counts and not (incoming_company = '' and c.at >= accepted and c.stored_at is null),
        false
      ) as leaves_time
    from (
      select
        known.company_at as at,
        known.stored_company_at as stored_at,
        incoming_company is not null
          and known.company_at >= least(accepted, coalesce(known.stored_company_at, known.company_at)) as counts
    ) c
  ) moved
  cross join lateral (
    select
      coalesce(jsonb_object_agg(p.name, p.value), '{}') as properties,
      -- The removal without a time of what nothing is known of leaves none: see known_properties.
      coalesce(
        jsonb_object_agg(p.name, p.at) filter (where not (p.value = 'null'::jsonb and p.at >= accepted and p.stored_at is null)),
        '{}'
      ) as times,
      coalesce(bool_or(p.value = 'null'::jsonb), false) as removes
    from (
      select
        i.key as name,
        i.value,
        coalesce((incoming_times -> 'properties' -> i.key)::bigint, accepted) as at,
        coalesce((stored_times -> 'properties' -> i.key)::bigint, case when stored ? i.key then known.base end) as stored_at
      from jsonb_each(incoming) i
    ) p
    where p.at >= least(accepted, coalesce(p.stored_at, p.at))
  ) won
$$;
