-- The profiles, as an analyst queries them.
--
-- load_id, load_chunk, load_touches say which load wrote the row last. They are how a load that runs in parallel
-- finds out that it met one key twice (see docs/architecture.md, "Last record wins"); records that come one by one
-- over HTTP leave them alone.

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
  constraint users_pkey primary key (environment_id, user_id)
);
comment on table sluice.users is 'One row per end user and environment.';
comment on column sluice.users.company_id is 'The one company the user belongs to now.';
comment on column sluice.users.metadata is 'Free-form properties; never holds a null at the top level.';
comment on column sluice.users.updated_at is 'When the row last changed; loads that bring nothing new do not touch it.';
comment on column sluice.users.load_id is 'The load that wrote the row last: sluice.loads.load_id.';
comment on column sluice.users.load_chunk is 'The highest chunk of that load that wrote the row.';
comment on column sluice.users.load_touches is 'How many chunks of that load wrote the row.';

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
  constraint companies_pkey primary key (environment_id, company_id)
);
comment on table sluice.companies is 'One row per company (account) and environment.';

-- What an export filters by. Block ranges for the times: a tree of them would have to be written at every change of a
-- row, which PostgreSQL could then no longer make in place.
create index users_company_idx on sluice.users (environment_id, company_id) where company_id is not null;
create index users_updated_idx on sluice.users using brin (updated_at) with (autosummarize = on);
create index companies_updated_idx on sluice.companies using brin (updated_at) with (autosummarize = on);

-- Removes the properties that a record sets to null. Top level only: a null inside a nested value is data.
create function sluice.without_nulls(properties jsonb) returns jsonb
  language sql immutable strict parallel safe
  return properties - array(
    select key
    from jsonb_each(properties)
    where value = 'null'::jsonb
  );

-- Of companies, those that something is brought for which they do not have.
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
    select i.e, i.k, i.p
    from json_to_recordset(incoming) as i (e integer, k text, p jsonb)
    where not exists (
      select
      from sluice.companies c
      where c.environment_id = i.e
        and c.company_id = i.k
        and case
          when removes then sluice.without_nulls(c.metadata || i.p) = c.metadata
          else c.metadata || i.p = c.metadata
        end
    );
end
$$;
