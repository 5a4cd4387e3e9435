-- Every change of a profile is kept: what it was before, for CHANGES_DAYS. History, taking loads back and the removals of exports stand on it.
--
-- Statement triggers with transition tables write the log, so loads, single records, deletions and an operator's own SQL are all in
-- it. New profiles write no row: a profile was made by the load of its first change, or else by its own load_id.
-- Whole rows are kept, since finding out what changed costs more than writing all of it: whoever reads compares.
create sequence sluice.change_seq as bigint;

create type sluice.entity as enum ('users', 'companies');

-- In an order that needs no padding.
create table sluice.changes (
  seq bigint not null default nextval('sluice.change_seq'),
  at timestamptz not null default now(),
  position bigint not null,
  position_before bigint not null,
  load_id bigint,
  load_before bigint,
  first_seen_before timestamptz,
  environment_id integer not null,
  entity sluice.entity not null,
  before jsonb,
  is_operator boolean not null default false,
  removed boolean not null default false,
  key text collate "C" not null,
  company_before text collate "C",
  constraint changes_erased_check check (before is not null or (removed and company_before is null))
) partition by range (at);
comment on table sluice.changes is
  'Changed and removed profiles as they were before. One partition a day (UTC), made by sluice.ensure_changes_partition. Deleting a person or a company deletes these and leaves one row that is removed, without before, so that nothing brings them back.';
comment on column sluice.changes.seq is 'Orders the changes of one profile: it is drawn while the row is locked.';
comment on column sluice.changes.position is 'The transaction that made the change: sluice.current_position().';
comment on column sluice.changes.position_before is 'The transaction that wrote what is kept here.';
comment on column sluice.changes.load_id is 'The load that made the change; null: a single record, a deletion or an operator''s SQL.';
comment on column sluice.changes.is_operator is 'The change came from a session that is not one of ours.';
comment on column sluice.changes.before is 'The properties before the change; null: the data of this profile was deleted, and only that it is gone is kept.';
comment on column sluice.changes.load_before is 'sluice.users.load_id before the change.';
comment on column sluice.changes.first_seen_before is 'Of a removed profile only.';
-- Hashes take a third of what keys and seq would: 28 bytes a change instead of 77.
create index changes_key_idx on sluice.changes (environment_id, hashtext(key));
create index changes_position_idx on sluice.changes using brin (position, load_id) with (autosummarize = on);

-- Takes what comes while the partition of its day is missing.
create table sluice.changes_default partition of sluice.changes default;

-- Positions of a restored database go on above those of the backup. A cursor counts if the position it was taken at is in `lineage`;
-- the rows that others wrote after the backup are not here.
create table sluice.change_log (
  is_only boolean not null default true,
  lineage int8multirange not null default '{[0,)}',
  complete_since bigint default 0,
  complete_since_at timestamptz default now(),
  known_position bigint not null default 0,
  constraint change_log_pkey primary key (is_only),
  constraint change_log_is_only check (is_only),
  constraint change_log_complete_check check ((complete_since is null) = (complete_since_at is null))
);
comment on table sluice.change_log is 'One row: what cursors are checked against.';
comment on column sluice.change_log.lineage is 'The positions at which this database, or one it was restored from, was written.';
comment on column sluice.change_log.complete_since is 'Changes at this and all later positions are in sluice.changes; null: the log is off.';
comment on column sluice.change_log.complete_since_at is 'The time of complete_since, for people; set it with it.';
comment on column sluice.change_log.known_position is
  'Positions below it were written. Those of a copy of the database on another server may begin lower; see open_change_log.';
insert into sluice.change_log default values;

-- TRUNCATE shows its trigger no rows: what came before it is complete no longer.
create function sluice.forget_changes() returns trigger
  language plpgsql
  set search_path = pg_catalog
as $$
begin
  perform sluice.note_forgotten_changes(sluice.current_position(), clock_timestamp());
  return null;
end
$$;

-- Two tables, one text. A profile whose key an operator changed is gone under the old key. PL/pgSQL keeps the plan of its first call,
-- which may have seen one row: a nested loop over the rows of a chunk would take hours. Whoever writes may have turned hash joins off.
do $do$
declare
  watched record;
begin
  for watched in
    values ('users', 'user_id', 'o.company_id'), ('companies', 'company_id', 'null')
  loop
    execute format($create$
      create function sluice.log_changed_%1$s() returns trigger
        language plpgsql
        set search_path = pg_catalog
        set enable_nestloop = off
        set enable_hashjoin = on
      as $body$
      declare
        loaded bigint := nullif(current_setting('sluice.load_id', true), '');
        operates boolean := current_setting('application_name') not like 'sluice%%';
      begin
        insert into sluice.changes (
          position, position_before, environment_id, entity, key, load_id, is_operator, removed,
          before, company_before, load_before, first_seen_before
        )
        select
          coalesce(n.position, sluice.current_position()), o.position, o.environment_id, %1$L, o.%2$I, loaded, operates,
          n.position is null, o.metadata, %3$s, o.load_id, case when n.position is null then o.first_seen_at end
        from written_before o
        left join written n using (environment_id, %2$I)
        where n.position is distinct from o.position;
        return null;
      end
      $body$;
      create trigger %1$s_log_changes after update on sluice.%1$s referencing old table as written_before new table as written
        for each statement execute function sluice.log_changed_%1$s();

      create function sluice.log_removed_%1$s() returns trigger
        language plpgsql
        set search_path = pg_catalog
      as $body$
      declare
        keeps boolean := current_setting('sluice.erases', true) is distinct from 'on';
      begin
        insert into sluice.changes (
          position, position_before, environment_id, entity, key, load_id, is_operator, removed,
          before, company_before, load_before, first_seen_before
        )
        select
          sluice.current_position(), o.position, o.environment_id, %1$L, o.%2$I,
          nullif(current_setting('sluice.load_id', true), '')::bigint, current_setting('application_name') not like 'sluice%%', true,
          case when keeps then o.metadata end, case when keeps then %3$s end,
          case when keeps then o.load_id end, case when keeps then o.first_seen_at end
        from removed o;
        return null;
      end
      $body$;
      create trigger %1$s_log_removals after delete on sluice.%1$s referencing old table as removed
        for each statement execute function sluice.log_removed_%1$s();
      create trigger %1$s_note_truncation after truncate on sluice.%1$s for each statement execute function sluice.forget_changes();
    $create$, watched.column1, watched.column2, watched.column3);
  end loop;
end
$do$;

-- Makes the partition of a day (UTC), if it is missing; returns whether it did. A day whose first rows came while it was missing keeps
-- them, and all others, in the default partition: to move them would hold up the writers.
create function sluice.ensure_changes_partition(moment timestamptz) returns boolean
  language plpgsql
  set search_path = pg_catalog
as $$
declare
  day timestamp := date_trunc('day', moment at time zone 'UTC');
  begins timestamptz := day at time zone 'UTC';
  ends timestamptz := (day + interval '1 day') at time zone 'UTC';
  partition text := 'changes_' || to_char(day, 'YYYY_MM_DD');
begin
  perform pg_advisory_xact_lock(hashtext('sluice.ensure_changes_partition'));
  if exists (
    select 1
    from pg_class
    where relname = partition and relnamespace = 'sluice'::regnamespace
  ) then
    return false;
  end if;
  -- Nobody writes a row of a day to come. Whoever is about to write one of today would not find it in the default partition any more.
  if begins <= clock_timestamp() then
    lock table sluice.changes in share row exclusive mode;
  end if;
  if exists (select 1 from sluice.changes_default where at >= begins and at < ends) then
    return false;
  end if;
  execute format('create table sluice.%I (like sluice.changes including all)', partition);
  execute format('alter table sluice.changes attach partition sluice.%I for values from (%L) to (%L)', partition, begins, ends);
  return true;
end;
$$;

-- Makes the partitions of today and of the 7 days to come; returns how many. If somebody reads the log for long, a later call makes them.
create function sluice.ensure_changes_partitions() returns integer
  language plpgsql
  set search_path = pg_catalog
  set lock_timeout = '200ms'
as $$
declare
  made integer := 0;
begin
  for ahead in 0..7 loop
    begin
      made := made + sluice.ensure_changes_partition(now() + ahead * interval '1 day')::integer;
    exception when lock_not_available then
      null;
    end;
  end loop;
  return made;
end;
$$;

-- Drops the partitions of the days before the last `days`, and today; returns how many. What is complete begins above the highest position
-- that went: a transaction that was open for long may have a lower one in the log of a later day.
create function sluice.drop_old_changes(days integer) returns integer
  language plpgsql
  set search_path = pg_catalog
  set lock_timeout = '200ms'
as $$
declare
  kept timestamptz := (date_trunc('day', now() at time zone 'UTC') - days * interval '1 day') at time zone 'UTC';
  partition name;
  highest bigint;
  dropped integer := 0;
begin
  for partition in
    select relname
    from pg_class
    where relnamespace = 'sluice'::regnamespace and relkind = 'r' and relname ~ '^changes_\d{4,}_\d\d_\d\d$'
      and relname < 'changes_' || to_char(kept at time zone 'UTC', 'YYYY_MM_DD')
    order by 1
  loop
    -- Read before the lock that holds up all writers.
    execute format('lock table sluice.%I in share mode', partition);
    execute format('select max(position) from sluice.%I', partition) into highest;
    execute format('drop table sluice.%I', partition);
    perform sluice.note_forgotten_changes(highest, kept);
    dropped := dropped + 1;
  end loop;
  with gone as (
    delete from sluice.changes_default where at < kept returning position
  )
  select max(position) from gone into highest;
  perform sluice.note_forgotten_changes(highest, kept);
  return dropped;
end;
$$;

create function sluice.note_forgotten_changes(highest bigint, kept timestamptz) returns void
  language sql
  set search_path = pg_catalog
  begin atomic
    update sluice.change_log
    set complete_since = greatest(complete_since, highest + 1), complete_since_at = greatest(complete_since_at, kept)
    where highest is not null and complete_since is not null;
  end;

-- Turns the log on or off; returns whether it was the other way.
create function sluice.switch_change_log(is_on boolean) returns boolean
  language plpgsql
  set search_path = pg_catalog
  set lock_timeout = '200ms'
as $$
declare
  verb text := case when is_on then 'enable' else 'disable' end;
  watched text;
begin
  perform pg_advisory_xact_lock(hashtext('sluice.ensure_changes_partition'));
  if is_on = (select complete_since is not null from sluice.change_log)
    and not exists (
      select 1
      from pg_trigger
      where tgname ~ '^(users|companies)_log_(changes|removals)$' and (tgenabled = 'D') = is_on
        and tgrelid in ('sluice.users'::regclass, 'sluice.companies'::regclass)
    ) then
    return false;
  end if;
  foreach watched in array array['users', 'companies'] loop
    execute format('alter table sluice.%1$s %2$s trigger %1$s_log_changes, %2$s trigger %1$s_log_removals', watched, verb);
  end loop;
  -- Whoever wrote without the triggers has ended, since the tables are locked now.
  update sluice.change_log
  set
    complete_since = case when is_on then sluice.next_position() end,
    complete_since_at = case when is_on then clock_timestamp() end;
  return true;
end;
$$;

-- All positions that were written are below it.
create function sluice.next_position() returns bigint
  language sql stable
  return pg_snapshot_xmax(pg_current_snapshot())::text::bigint + sluice.position_offset();

-- Goes on with positions above all that the data holds, and so far above that cursors from another life of it are in no lineage. Of the
-- earlier cursors those count that were taken below `seen`.
create function sluice.raise_positions(seen bigint) returns void
  language plpgsql
  set search_path = pg_catalog
as $$
declare
  base bigint;
begin
  lock table sluice.users, sluice.companies, sluice.events in share row exclusive mode;
  base := greatest(seen, sluice.next_position()) + (2 ^ 33)::bigint + floor(random() * 2 ^ 32)::bigint;
  execute format(
    'create or replace function sluice.position_offset() returns bigint language sql stable parallel safe return %L::bigint',
    base - pg_current_xact_id()::text::bigint
  );
  update sluice.change_log
  set
    lineage = lineage * int8multirange(int8range(0, seen)) + int8multirange(int8range(base, null)),
    known_position = base;
end;
$$;

-- Called at every start. Returns whether positions had gone back: the database was copied to a server whose transaction ids are lower.
-- Servers look at the data, too: what was written after known_position was noted is not in it.
create function sluice.open_change_log(is_server boolean) returns boolean
  language plpgsql
  set search_path = pg_catalog
  -- So that block ranges tell it.
  set enable_seqscan = off
as $$
declare
  has_ranges boolean := is_server and to_regclass('sluice.users_position_idx') is not null;
begin
  perform sluice.ensure_changes_partitions();
  if (select sluice.next_position() >= known_position from sluice.change_log)
    and not exists (select 1 from sluice.changes where is_server and position >= sluice.next_position())
    and not exists (select 1 from sluice.events where is_server and position >= sluice.next_position())
    and not exists (select 1 from sluice.users where has_ranges and position >= sluice.next_position())
    and not exists (select 1 from sluice.companies where has_ranges and position >= sluice.next_position())
  then
    return false;
  end if;
  perform sluice.raise_positions((select known_position from sluice.change_log));
  return true;
end;
$$;

-- A cursor is a snapshot: everything at positions that it does not see came after it.
create function sluice.current_cursor() returns text
  language sql stable
  set search_path = pg_catalog
  begin atomic
    select concat_ws(
      ':',
      pg_snapshot_xmin(s)::text::bigint + sluice.position_offset(),
      pg_snapshot_xmax(s)::text::bigint + sluice.position_offset(),
      (select coalesce(string_agg((x::text::bigint + sluice.position_offset())::text, ',' order by x), '') from pg_snapshot_xip(s) x)
    )
    from pg_current_snapshot() s;
  end;

create function sluice.is_since(written bigint, seen pg_snapshot) returns boolean
  language sql immutable parallel safe
  return written >= pg_snapshot_xmin(seen)::text::bigint and not pg_visible_in_snapshot(written::text::xid8, seen);

-- Returns what turns `stored` into `wanted` when laid over it; nulls remove.
create function sluice.difference(stored jsonb, wanted jsonb) returns jsonb
  language sql immutable parallel safe
  return (
    select coalesce(jsonb_object_agg(name, coalesce(wanted -> name, 'null')), '{}')
    from jsonb_object_keys(stored || wanted) name
    where stored -> name is distinct from wanted -> name
  );
