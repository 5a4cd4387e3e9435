-- The profiles, as an analyst queries them.
--
-- load_id, load_chunk, load_touches say which load wrote the row last. They are how a load that runs in parallel
-- finds out that it met one key twice (see docs/architecture.md, "Last record wins"); records that come one by one
-- over HTTP leave them alone.
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
  digest uuid,
  position bigint not null default sluice.current_position(),
  constraint users_pkey primary key (environment_id, user_id)
);
comment on table sluice.users is 'One row per end user and environment.';
comment on column sluice.users.company_id is 'The one company the user belongs to now.';
comment on column sluice.users.metadata is 'Free-form properties; never holds a null at the top level.';
comment on column sluice.users.updated_at is 'The time of the last change; loads that bring nothing new do not touch it.';
comment on column sluice.users.load_id is 'The load that wrote the row last: sluice.loads.load_id.';
comment on column sluice.users.load_chunk is 'The highest chunk of that load that wrote the row.';
comment on column sluice.users.load_touches is 'The number of chunks of that load that wrote the row.';
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
  digest uuid,
  position bigint not null default sluice.current_position(),
  constraint companies_pkey primary key (environment_id, company_id)
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
