-- Every change of a profile is kept: what it was before, for CHANGES_DAYS. History, undo and the removals of exports stand on it.
--
-- Statement triggers with transition tables write the log, so loads, single records, deletions and an operator's own SQL are all in
-- it. New profiles write no row: a profile was made by the load of its first change, or else by its own load_id.
-- Whole rows are kept, since finding out what changed costs more than writing all of it: whoever reads compares.
create sequence sluice.change_seq as bigint;

create table sluice.changes (
  seq bigint not null default nextval('sluice.change_seq'),
  at timestamptz not null default now(),
  position bigint not null,
  position_before bigint not null,
  environment_id integer not null,
  entity text not null,
  key text collate "C" not null,
  load_id bigint,
  is_operator boolean not null default false,
  removed boolean not null default false,
  before jsonb,
  company_before text collate "C",
  times_before jsonb,
  load_before bigint,
  first_seen_before timestamptz,
  constraint changes_entity_check check (entity in ('users', 'companies')),
  constraint changes_erased_check check (before is not null or (removed and company_before is null and times_before is null))
) partition by range (at);
comment on table sluice.changes is 'Changed and removed profiles as they were before. One partition a day (UTC), made by sluice.ensure_changes_partition.';
comment on column sluice.changes.seq is 'Orders the changes of one profile: it is drawn while the row is locked.';
comment on column sluice.changes.position is 'The transaction that made the change: sluice.current_position().';
comment on column sluice.changes.position_before is 'The transaction that wrote what is kept here.';
comment on column sluice.changes.load_id is 'The load that made the change; null: a single record, a deletion or an operator''s SQL.';
comment on column sluice.changes.is_operator is 'The change came from a session that is not one of ours.';
comment on column sluice.changes.before is 'The properties before the change; null: the data of this profile was deleted, and only that it is gone is kept.';
comment on column sluice.changes.load_before is 'sluice.users.load_id before the change.';
comment on column sluice.changes.first_seen_before is 'Of a removed profile only.';
create index changes_key_idx on sluice.changes (environment_id, entity, key, seq);
create index changes_position_idx on sluice.changes using brin (position, load_id) with (autosummarize = on);

-- Takes what comes while the partition of its day is missing.
create table sluice.changes_default partition of sluice.changes default;

-- Positions of a restored database go on above those of the backup. A cursor counts if the position it was taken at is in `lineage`;
-- the rows that others wrote after the backup are not here.
create table sluice.change_log (
  is_only boolean not null default true,
  lineage int8multirange not null default '{[0,)}',
  complete_since bigint not null default 0,
  complete_since_at timestamptz not null default now(),
  constraint change_log_pkey primary key (is_only),
  constraint change_log_is_only check (is_only)
);
comment on table sluice.change_log is 'One row: what cursors are checked against.';
comment on column sluice.change_log.lineage is 'The positions at which this database, or one it was restored from, was written.';
comment on column sluice.change_log.complete_since is 'Changes at this and all later positions are in sluice.changes, unless the log is off.';
comment on column sluice.change_log.complete_since_at is 'The time of complete_since, for people; set it with it.';
insert into sluice.change_log default values;

-- Two tables, one text. PL/pgSQL keeps the plan of its first call, which may have seen one row: a nested loop over the rows of a
-- chunk would take hours.
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
      as $body$
      begin
        insert into sluice.changes (
          position, position_before, environment_id, entity, key, load_id, is_operator, before, company_before, times_before, load_before
        )
        select
          n.position, o.position, o.environment_id, %1$L, o.%2$I, nullif(current_setting('sluice.load_id', true), '')::bigint,
          current_setting('application_name') not like 'sluice%%', o.metadata, %3$s, o.times, o.load_id
        from written_before o
        join written n using (environment_id, %2$I)
        where n.position <> o.position;
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
          before, company_before, times_before, load_before, first_seen_before
        )
        select
          sluice.current_position(), o.position, o.environment_id, %1$L, o.%2$I,
          nullif(current_setting('sluice.load_id', true), '')::bigint, current_setting('application_name') not like 'sluice%%', true,
          case when keeps then o.metadata end, case when keeps then %3$s end, case when keeps then o.times end,
          case when keeps then o.load_id end, case when keeps then o.first_seen_at end
        from removed o;
        return null;
      end
      $body$;
      create trigger %1$s_log_removals after delete on sluice.%1$s referencing old table as removed
        for each statement execute function sluice.log_removed_%1$s();
    $create$, watched.column1, watched.column2, watched.column3);
  end loop;
end
$do$;

-- Makes the partition of a day (UTC), if it is missing; returns whether it was. Rows of the day that came before it move into it.
create function sluice.ensure_changes_partition(moment timestamptz) returns boolean
  language plpgsql
  set search_path = pg_catalog
as $$
declare
  day timestamp := date_trunc('day', moment at time zone 'UTC');
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
  execute format('create table sluice.%I (like sluice.changes including all)', partition);
  if exists (select from sluice.changes_default) then
    lock table sluice.changes in access exclusive mode;
    execute format(
      'with moved as (
        delete from sluice.changes_default where at >= %L and at < %L returning *
      )
      insert into sluice.%I select * from moved',
      day at time zone 'UTC',
      (day + interval '1 day') at time zone 'UTC',
      partition
    );
  end if;
  execute format(
    'alter table sluice.changes attach partition sluice.%I for values from (%L) to (%L)',
    partition,
    day at time zone 'UTC',
    (day + interval '1 day') at time zone 'UTC'
  );
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
