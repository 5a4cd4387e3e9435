-- Events, by month (UTC).
--
-- An event's id is unique per user. The key begins with the time, which exports read in order, and ends with the user,
-- so that a database that keeps users apart on several servers can hold it too (docs/decisions/keys-and-merge.md).
-- The time is the first column, where it needs no padding.

create table sluice.events (
  inserted_at timestamptz not null,
  environment_id integer not null,
  event_id text collate "C" not null,
  event_type text not null default 'track',
  event_name text collate "C" not null,
  user_id text collate "C" not null,
  company_id text collate "C",
  source text not null,
  metadata jsonb not null default '{}',
  position bigint not null default sluice.current_position(),
  -- Nearly all events come after those that are there: full pages save 4 bytes an event.
  constraint events_pkey primary key (environment_id, inserted_at, event_id, user_id) with (fillfactor = 100)
) partition by range (inserted_at);
comment on table sluice.events is 'What users did. One partition per month, made by sluice.ensure_events_partition.';
comment on column sluice.events.company_id is 'The company the user belonged to when the event was taken in, or the one that it named.';
comment on column sluice.events.position is 'The transaction that added the row.';
comment on column sluice.events.inserted_at is 'When it happened, as the caller says; else when it was taken in.';
create index events_user_idx on sluice.events (environment_id, user_id, inserted_at);
create index events_company_idx on sluice.events (environment_id, company_id, inserted_at) where company_id is not null;
create index events_position_idx on sluice.events using brin (position) with (autosummarize = on);
-- Without the time, so that the rows of a name share one entry: 7 bytes an event instead of 76.
create index events_name_idx on sluice.events (environment_id, event_name);

create table sluice.event_ids (
  environment_id integer not null,
  event_id text collate "C" not null,
  user_id text collate "C" not null,
  inserted_at timestamptz not null,
  constraint event_ids_pkey primary key (environment_id, event_id, user_id)
);
comment on table sluice.event_ids is
  'Ids that callers gave to the events of a user. A unique index on a partitioned table must hold the month, and a repeated event may come with another.';

-- A file that was loaded before has nothing to add, unless events were removed since. Its load notes the number that stood here
-- when it started, and a removal that commits later makes a difference, whenever it began.
create table sluice.event_removals (
  environment_id integer not null,
  removals bigint not null default 1,
  constraint event_removals_pkey primary key (environment_id),
  constraint event_removals_environment_fkey foreign key (environment_id) references sluice.environments on delete cascade
);
comment on table sluice.event_removals is 'How often events were removed from each environment, by whomever.';

-- Called in the transaction that removes or changes events, with pairs of environment and month. `erases`: a deletion of profiles does it.
-- It does nothing: a capability that keeps copies of events replaces it.
create function sluice.event_months_changed(environments integer[], months date[], erases boolean) returns void
  language plpgsql
  set search_path = pg_catalog
  as $$
begin
end;
$$;

-- Rows of events do not refer to their environment, and may outlive it.
create function sluice.note_event_removals() returns trigger
  language plpgsql
  set search_path = pg_catalog
  as $$
declare
  environments integer[];
  months date[];
begin
  if tg_op = 'TRUNCATE' then
    perform sluice.note_all_event_removals();
  else
    select array_agg(environment_id), array_agg(month)
    into environments, months
    from (
      select distinct environment_id, date_trunc('month', inserted_at at time zone 'UTC')::date as month from removed
    ) r;
    if environments is null then
      return null;
    end if;
    insert into sluice.event_removals as r (environment_id)
    select environment_id
    from (select distinct environment_id from unnest(environments) e (environment_id)) d
    join sluice.environments using (environment_id)
    order by 1
    on conflict (environment_id) do update set removals = r.removals + 1;
    perform sluice.event_months_changed(
      environments, months, coalesce(current_setting('sluice.erases', true) = 'on', false)
    );
  end if;
  return null;
end;
$$;

-- For a partition that goes as a whole.
create function sluice.note_all_event_removals() returns void
  language sql
  set search_path = pg_catalog
  begin atomic
    insert into sluice.event_removals as r (environment_id)
    select environment_id from sluice.environments order by 1
    on conflict (environment_id) do update set removals = r.removals + 1;
  end;

-- A trigger of the statement is that of the table which the statement names: the partitions have their own.
create procedure sluice.watch_event_removals(watched regclass)
  language plpgsql
  set search_path = pg_catalog
  as $$
begin
  execute format(
    'create trigger note_deletions after delete on %s referencing old table as removed
      for each statement execute function sluice.note_event_removals()',
    watched
  );
  execute format(
    'create trigger note_truncation after truncate on %s for each statement execute function sluice.note_event_removals()',
    watched
  );
end;
$$;
call sluice.watch_event_removals('sluice.events');
-- Until its id is forgotten, an event that left the table is not added again.
call sluice.watch_event_removals('sluice.event_ids');

-- Makes the partition for a moment's month, if it is missing; returns whether it was. Made aside and then attached,
-- which does not hold up those who insert. Of two at once one waits for the other. Whether the table is there is read
-- from pg_class and not asked of to_regclass, which may answer from a cache that has not heard of the other's yet.
create function sluice.ensure_events_partition(moment timestamptz) returns boolean
  language plpgsql
  set search_path = pg_catalog
  as $$
declare
  month timestamp := date_trunc('month', moment at time zone 'UTC');
  partition text := 'events_' || to_char(month, 'YYYY_MM');
begin
  perform pg_advisory_xact_lock(hashtext('sluice.ensure_events_partition'));
  if exists (
    select 1
    from pg_class
    where relname = partition and relnamespace = 'sluice'::regnamespace
  ) then
    return false;
  end if;
  execute format('create table sluice.%I (like sluice.events including all)', partition);
  execute format(
    'alter table sluice.events attach partition sluice.%I for values from (%L) to (%L)',
    partition,
    month at time zone 'UTC',
    (month + interval '1 month') at time zone 'UTC'
  );
  call sluice.watch_event_removals(format('sluice.%I', partition)::regclass);
  return true;
end;
$$;
