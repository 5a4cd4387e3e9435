--
-- PostgreSQL database dump
--


-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: sluice; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA sluice;


--
-- Name: entity; Type: TYPE; Schema: sluice; Owner: -
--

CREATE TYPE sluice.entity AS ENUM (
    'users',
    'companies'
);


--
-- Name: companies_to_write(json, boolean); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.companies_to_write(incoming json, removes boolean) RETURNS TABLE(e integer, k text, p jsonb)
    LANGUAGE plpgsql STRICT
    AS $$
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


--
-- Name: mended_since(bigint); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.mended_since(load bigint) RETURNS TABLE(row_number bigint, mended_by bigint)
    LANGUAGE plpgsql STABLE
    AS $$
#variable_conflict use_column
begin
  return query
  with recursive mended as (
    select m.row_number, m.mended_by, m.mended_row
    from sluice.load_mends m
    where m.load_id = load
    union
    select earlier.row_number, m.mended_by, m.mended_row
    from mended earlier
    join sluice.load_mends m on m.load_id = earlier.mended_by and m.row_number = earlier.mended_row
  )
  select m.row_number, m.mended_by
  from mended m
  join sluice.loads l on l.load_id = m.mended_by
  where l.status = 'completed'
    and not exists (select 1 from sluice.load_lineage n where n.load_id = l.load_id and n.taken_back_by is not null)
    and exists (select 1 from sluice.load_rejects r where r.load_id = load and r.row_number = m.row_number)
    and not exists (select 1 from sluice.load_rejects r where r.load_id = m.mended_by and r.row_number = m.mended_row);
end
$$;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: load_mends; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.load_mends (
    load_id bigint NOT NULL,
    row_number bigint NOT NULL,
    mended_by bigint NOT NULL,
    mended_row bigint NOT NULL
);


--
-- Name: count_mended(bigint); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.count_mended(load bigint) RETURNS bigint
    LANGUAGE sql STABLE
    RETURN CASE WHEN (EXISTS (SELECT 1 FROM sluice.load_mends m WHERE (m.load_id = count_mended.load))) THEN (SELECT count(DISTINCT m.row_number) AS count FROM sluice.mended_since(count_mended.load) m(row_number, mended_by)) ELSE (0)::bigint END;


--
-- Name: position_offset(); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.position_offset() RETURNS bigint
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (0)::bigint;


--
-- Name: current_cursor(); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.current_cursor() RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog'
    BEGIN ATOMIC
 SELECT concat_ws(':'::text, (((pg_snapshot_xmin(s.s))::text)::bigint + sluice.position_offset()), (((pg_snapshot_xmax(s.s))::text)::bigint + sluice.position_offset()), ( SELECT COALESCE(string_agg(((((x.x)::text)::bigint + sluice.position_offset()))::text, ','::text ORDER BY x.x), ''::text) AS "coalesce"
            FROM pg_snapshot_xip(s.s) x(x))) AS concat_ws
    FROM pg_current_snapshot() s(s);
END;


--
-- Name: current_position(); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.current_position() RETURNS bigint
    LANGUAGE sql STABLE
    RETURN (((pg_current_xact_id())::text)::bigint + sluice.position_offset());


--
-- Name: difference(jsonb, jsonb); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.difference(stored jsonb, wanted jsonb) RETURNS jsonb
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (SELECT COALESCE(jsonb_object_agg(name.name, COALESCE((difference.wanted -> name.name), 'null'::jsonb)), '{}'::jsonb) AS "coalesce" FROM jsonb_object_keys((difference.stored || difference.wanted)) name(name) WHERE ((difference.stored -> name.name) IS DISTINCT FROM (difference.wanted -> name.name)));


--
-- Name: drop_old_changes(integer); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.drop_old_changes(days integer) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog'
    SET lock_timeout TO '200ms'
    AS $_$
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
$_$;


--
-- Name: ensure_changes_partition(timestamp with time zone); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.ensure_changes_partition(moment timestamp with time zone) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog'
    AS $$
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


--
-- Name: ensure_changes_partitions(); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.ensure_changes_partitions() RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog'
    SET lock_timeout TO '200ms'
    AS $$
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


--
-- Name: ensure_events_partition(timestamp with time zone); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.ensure_events_partition(moment timestamp with time zone) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog'
    AS $$
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


--
-- Name: event_months_changed(integer[], date[], boolean); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.event_months_changed(environments integer[], months date[], erases boolean) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog'
    AS $$
begin
  update sluice.lake_months m
  set revision = revision + erases::int, removals = removals + (not erases)::int
  from unnest(environments, months) c (environment_id, month)
  where m.environment_id = c.environment_id and m.month = c.month;
end;
$$;


--
-- Name: forget_changes(); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.forget_changes() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog'
    AS $$
begin
  perform sluice.note_forgotten_changes(sluice.current_position(), clock_timestamp());
  return null;
end
$$;


--
-- Name: hash_of(bigint); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.hash_of(mark bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (mark & ('-4'::integer)::bigint);


--
-- Name: id_hash(bytea, text); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.id_hash(secret bytea, id text) RETURNS bytea
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
    RETURN sha256((secret || convert_to(id, 'UTF8'::name)));


--
-- Name: is_counted(bigint); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.is_counted(mark bigint) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ((mark & (2)::bigint) = 0);


--
-- Name: is_new(bigint); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.is_new(mark bigint) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ((mark & (1)::bigint) = 1);


--
-- Name: is_since(bigint, pg_snapshot); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.is_since(written bigint, seen pg_snapshot) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ((written >= ((pg_snapshot_xmin(seen))::text)::bigint) AND (NOT pg_visible_in_snapshot(((written)::text)::xid8, seen)));


--
-- Name: key_hash(text); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.key_hash(key text) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (hashtextextended(key, (0)::bigint) & ('-4'::integer)::bigint);


--
-- Name: log_changed_companies(); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.log_changed_companies() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog'
    SET enable_nestloop TO 'off'
    SET enable_hashjoin TO 'on'
    AS $$
      declare
        loaded bigint := nullif(current_setting('sluice.load_id', true), '');
        operates boolean := current_setting('application_name') not like 'sluice%';
      begin
        insert into sluice.changes (
          position, position_before, environment_id, entity, key, load_id, is_operator, removed,
          before, company_before, load_before, first_seen_before
        )
        select
          coalesce(n.position, sluice.current_position()), o.position, o.environment_id, 'companies', o.company_id, loaded, operates,
          n.position is null, o.metadata, null, o.load_id, case when n.position is null then o.first_seen_at end
        from written_before o
        left join written n using (environment_id, company_id)
        where n.position is distinct from o.position;
        return null;
      end
      $$;


--
-- Name: log_changed_users(); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.log_changed_users() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog'
    SET enable_nestloop TO 'off'
    SET enable_hashjoin TO 'on'
    AS $$
      declare
        loaded bigint := nullif(current_setting('sluice.load_id', true), '');
        operates boolean := current_setting('application_name') not like 'sluice%';
      begin
        insert into sluice.changes (
          position, position_before, environment_id, entity, key, load_id, is_operator, removed,
          before, company_before, load_before, first_seen_before
        )
        select
          coalesce(n.position, sluice.current_position()), o.position, o.environment_id, 'users', o.user_id, loaded, operates,
          n.position is null, o.metadata, o.company_id, o.load_id, case when n.position is null then o.first_seen_at end
        from written_before o
        left join written n using (environment_id, user_id)
        where n.position is distinct from o.position;
        return null;
      end
      $$;


--
-- Name: log_removed_companies(); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.log_removed_companies() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog'
    AS $$
      declare
        keeps boolean := current_setting('sluice.erases', true) is distinct from 'on';
      begin
        insert into sluice.changes (
          position, position_before, environment_id, entity, key, load_id, is_operator, removed,
          before, company_before, load_before, first_seen_before
        )
        select
          sluice.current_position(), o.position, o.environment_id, 'companies', o.company_id,
          nullif(current_setting('sluice.load_id', true), '')::bigint, current_setting('application_name') not like 'sluice%', true,
          case when keeps then o.metadata end, case when keeps then null end,
          case when keeps then o.load_id end, case when keeps then o.first_seen_at end
        from removed o;
        return null;
      end
      $$;


--
-- Name: log_removed_users(); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.log_removed_users() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog'
    AS $$
      declare
        keeps boolean := current_setting('sluice.erases', true) is distinct from 'on';
      begin
        insert into sluice.changes (
          position, position_before, environment_id, entity, key, load_id, is_operator, removed,
          before, company_before, load_before, first_seen_before
        )
        select
          sluice.current_position(), o.position, o.environment_id, 'users', o.user_id,
          nullif(current_setting('sluice.load_id', true), '')::bigint, current_setting('application_name') not like 'sluice%', true,
          case when keeps then o.metadata end, case when keeps then o.company_id end,
          case when keeps then o.load_id end, case when keeps then o.first_seen_at end
        from removed o;
        return null;
      end
      $$;


--
-- Name: mark(bigint, boolean, boolean); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.mark(hash bigint, is_new boolean, is_counted boolean) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ((hash | ((is_new)::integer)::bigint) | ((2 * ((NOT is_counted))::integer))::bigint);


--
-- Name: next_position(); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.next_position() RETURNS bigint
    LANGUAGE sql STABLE
    RETURN (((pg_snapshot_xmax(pg_current_snapshot()))::text)::bigint + sluice.position_offset());


--
-- Name: environments; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.environments (
    environment_id integer NOT NULL,
    name text NOT NULL,
    app_token text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    record_key uuid DEFAULT gen_random_uuid() NOT NULL,
    allowed_origins text[] DEFAULT '{}'::text[] NOT NULL,
    export_layout text DEFAULT 'datasets'::text NOT NULL,
    CONSTRAINT environments_app_token_check CHECK ((app_token ~ '^[A-Z]{2}-[0-9A-Z]{8}$'::text)),
    CONSTRAINT environments_export_layout_check CHECK ((export_layout = ANY (ARRAY['datasets'::text, 'stream'::text]))),
    CONSTRAINT environments_name_check CHECK ((name ~ '^[a-z0-9][a-z0-9_-]{0,62}$'::text))
);


--
-- Name: event_removals; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.event_removals (
    environment_id integer NOT NULL,
    removals bigint DEFAULT 1 NOT NULL
);


--
-- Name: note_all_event_removals(); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.note_all_event_removals() RETURNS void
    LANGUAGE sql
    SET search_path TO 'pg_catalog'
    BEGIN ATOMIC
 INSERT INTO sluice.event_removals AS r (environment_id)  SELECT environments.environment_id
            FROM sluice.environments
           ORDER BY environments.environment_id ON CONFLICT(environment_id) DO UPDATE SET removals = (r.removals + 1);
END;


--
-- Name: note_change(); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.note_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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


--
-- Name: note_event_removals(); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.note_event_removals() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog'
    AS $$
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


--
-- Name: change_log; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.change_log (
    is_only boolean DEFAULT true NOT NULL,
    lineage int8multirange DEFAULT '{[0,)}'::int8multirange NOT NULL,
    complete_since bigint DEFAULT 0,
    complete_since_at timestamp with time zone DEFAULT now(),
    known_position bigint DEFAULT 0 NOT NULL,
    CONSTRAINT change_log_complete_check CHECK (((complete_since IS NULL) = (complete_since_at IS NULL))),
    CONSTRAINT change_log_is_only CHECK (is_only)
);


--
-- Name: note_forgotten_changes(bigint, timestamp with time zone); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.note_forgotten_changes(highest bigint, kept timestamp with time zone) RETURNS void
    LANGUAGE sql
    SET search_path TO 'pg_catalog'
    BEGIN ATOMIC
 UPDATE sluice.change_log SET complete_since = GREATEST(change_log.complete_since, (note_forgotten_changes.highest + 1)), complete_since_at = GREATEST(change_log.complete_since_at, note_forgotten_changes.kept)
   WHERE ((note_forgotten_changes.highest IS NOT NULL) AND (change_log.complete_since IS NOT NULL));
END;


--
-- Name: note_key(); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.note_key() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  new.position := sluice.current_position();
  new.load_id := null;
  return new;
end
$$;


--
-- Name: open_change_log(boolean); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.open_change_log(is_server boolean) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog'
    SET enable_seqscan TO 'off'
    AS $$
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


--
-- Name: raise_positions(bigint); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.raise_positions(seen bigint) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog'
    AS $$
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


--
-- Name: refuse_suppressed(bytea); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.refuse_suppressed(id_hash bytea) RETURNS text
    LANGUAGE plpgsql STRICT
    AS $$
begin
  raise exception 'the person was deleted and is kept out' using errcode = '23000', constraint = 'suppressions_pkey';
end
$$;


--
-- Name: refuse_unknown_use(text); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.refuse_unknown_use(name text) RETURNS boolean
    LANGUAGE plpgsql STRICT
    AS $$
begin
  raise exception 'the environment uses % meanwhile', name using errcode = '40001', constraint = 'environment_uses_pkey';
end
$$;


--
-- Name: switch_change_log(boolean); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.switch_change_log(is_on boolean) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog'
    SET lock_timeout TO '200ms'
    AS $_$
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
$_$;


--
-- Name: watch_event_removals(regclass); Type: PROCEDURE; Schema: sluice; Owner: -
--

CREATE PROCEDURE sluice.watch_event_removals(IN watched regclass)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog'
    AS $$
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


--
-- Name: without_nulls(jsonb); Type: FUNCTION; Schema: sluice; Owner: -
--

CREATE FUNCTION sluice.without_nulls(properties jsonb) RETURNS jsonb
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (properties - ARRAY(SELECT jsonb_each.key FROM jsonb_each(without_nulls.properties) jsonb_each(key, value) WHERE (jsonb_each.value = 'null'::jsonb)));


--
-- Name: api_keys; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.api_keys (
    key_id text NOT NULL,
    environment_id integer NOT NULL,
    label text NOT NULL,
    digest bytea NOT NULL,
    scopes text[] NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    last_used_at timestamp with time zone,
    CONSTRAINT api_keys_digest_check CHECK ((octet_length(digest) = 32)),
    CONSTRAINT api_keys_scopes_check CHECK ((((scopes <@ ARRAY['ingest'::text, 'import'::text, 'export'::text, 'read'::text, 'delete'::text]) AND (cardinality(scopes) > 0)) OR (scopes = ARRAY['browser'::text])))
);


--
-- Name: lane_positions; Type: SEQUENCE; Schema: sluice; Owner: -
--

CREATE SEQUENCE sluice.lane_positions
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: deletions; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.deletions (
    deletion_id bigint NOT NULL,
    job_id uuid NOT NULL,
    environment_id integer NOT NULL,
    lane_position bigint DEFAULT nextval('sluice.lane_positions'::regclass) NOT NULL,
    entity text NOT NULL,
    status text DEFAULT 'queued'::text NOT NULL,
    purge_exports boolean DEFAULT false NOT NULL,
    options jsonb DEFAULT '{}'::jsonb NOT NULL,
    request_id text,
    origin text,
    origin_name text,
    ids_requested integer NOT NULL,
    ids_deleted integer DEFAULT 0 NOT NULL,
    ids_not_found integer DEFAULT 0 NOT NULL,
    events_removed bigint DEFAULT 0 NOT NULL,
    rejects_removed bigint DEFAULT 0 NOT NULL,
    files_removed bigint DEFAULT 0 NOT NULL,
    exports_removed bigint DEFAULT 0 NOT NULL,
    accepted_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    failure_code text,
    failure_message text,
    CONSTRAINT deletions_completed_balances CHECK (((status <> 'completed'::text) OR (ids_requested = (ids_deleted + ids_not_found)))),
    CONSTRAINT deletions_ended_at_set CHECK (((ended_at IS NOT NULL) = (status = ANY (ARRAY['completed'::text, 'failed'::text])))),
    CONSTRAINT deletions_entity_check CHECK ((entity = ANY (ARRAY['users'::text, 'companies'::text]))),
    CONSTRAINT deletions_failed_has_reason CHECK (((failure_code IS NOT NULL) = (status = 'failed'::text))),
    CONSTRAINT deletions_origin_check CHECK ((origin = ANY (ARRAY['api_key'::text, 'schedule'::text, 'inbox'::text, 'command_line'::text]))),
    CONSTRAINT deletions_request_id_check CHECK ((length(request_id) <= 128)),
    CONSTRAINT deletions_status_check CHECK ((status = ANY (ARRAY['queued'::text, 'processing'::text, 'completed'::text, 'failed'::text])))
);


--
-- Name: exports; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.exports (
    export_id bigint NOT NULL,
    job_id uuid NOT NULL,
    environment_id integer NOT NULL,
    status text DEFAULT 'queued'::text NOT NULL,
    request jsonb NOT NULL,
    format text NOT NULL,
    compression text NOT NULL,
    emails text[] DEFAULT '{}'::text[] NOT NULL,
    warnings jsonb DEFAULT '[]'::jsonb NOT NULL,
    retention_days integer,
    request_id text,
    origin text,
    origin_name text,
    requested_at timestamp with time zone DEFAULT now() NOT NULL,
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    rows_expected bigint,
    rows_written bigint DEFAULT 0 NOT NULL,
    bytes_written bigint DEFAULT 0 NOT NULL,
    snapshot_at timestamp with time zone,
    cursor text,
    failure_code text,
    failure_message text,
    files_expired_at timestamp with time zone,
    CONSTRAINT exports_compression_check CHECK ((compression = ANY (ARRAY['gzip'::text, 'none'::text]))),
    CONSTRAINT exports_ended_at_set CHECK (((ended_at IS NOT NULL) = (status = ANY (ARRAY['completed'::text, 'failed'::text, 'cancelled'::text])))),
    CONSTRAINT exports_failed_has_reason CHECK (((failure_code IS NOT NULL) = (status = 'failed'::text))),
    CONSTRAINT exports_origin_check CHECK ((origin = ANY (ARRAY['api_key'::text, 'schedule'::text, 'inbox'::text, 'command_line'::text]))),
    CONSTRAINT exports_request_id_check CHECK ((length(request_id) <= 128)),
    CONSTRAINT exports_status_check CHECK ((status = ANY (ARRAY['queued'::text, 'processing'::text, 'completed'::text, 'failed'::text, 'cancelled'::text])))
);


--
-- Name: loads; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.loads (
    load_id bigint NOT NULL,
    job_id uuid NOT NULL,
    environment_id integer NOT NULL,
    lane_position bigint DEFAULT nextval('sluice.lane_positions'::regclass) NOT NULL,
    type text NOT NULL,
    entity text NOT NULL,
    status text DEFAULT 'queued'::text NOT NULL,
    filename text NOT NULL,
    file_size bigint NOT NULL,
    sha256 bytea NOT NULL,
    file_ref text,
    header jsonb,
    column_map jsonb DEFAULT '{}'::jsonb NOT NULL,
    preset text,
    source_options jsonb DEFAULT '{}'::jsonb NOT NULL,
    read_as jsonb,
    total_rows bigint NOT NULL,
    pass text DEFAULT 'load'::text NOT NULL,
    dry_run boolean GENERATED ALWAYS AS ((pass <> 'load'::text)) STORED NOT NULL,
    begins_anew boolean DEFAULT false NOT NULL,
    request_id text,
    origin text,
    origin_name text,
    accepted_at timestamp with time zone DEFAULT now() NOT NULL,
    file_cursor pg_snapshot,
    started_at timestamp with time zone,
    work_started_at timestamp with time zone,
    ended_at timestamp with time zone,
    failure_code text,
    failure_message text,
    attempts integer DEFAULT 1 NOT NULL,
    chunk_count integer NOT NULL,
    chunks_done integer DEFAULT 0 NOT NULL,
    rows_read bigint DEFAULT 0 NOT NULL,
    rows_inserted bigint DEFAULT 0 NOT NULL,
    rows_updated bigint DEFAULT 0 NOT NULL,
    rows_unchanged bigint DEFAULT 0 NOT NULL,
    rows_removed bigint DEFAULT 0 NOT NULL,
    rows_superseded bigint DEFAULT 0 NOT NULL,
    rows_rejected bigint DEFAULT 0 NOT NULL,
    dropped_properties bigint DEFAULT 0 NOT NULL,
    own_file boolean DEFAULT false NOT NULL,
    repeats_resolved_at timestamp with time zone,
    event_removals bigint,
    has_event_types boolean DEFAULT false NOT NULL,
    CONSTRAINT loads_chunks_done_check CHECK (((chunks_done >= 0) AND (chunks_done <= chunk_count))),
    CONSTRAINT loads_completed_balances CHECK (((status <> 'completed'::text) OR ((rows_read = total_rows) AND (chunks_done = chunk_count) AND (rows_read = (((((rows_inserted + rows_updated) + rows_unchanged) + rows_removed) + rows_superseded) + rows_rejected))))),
    CONSTRAINT loads_ended_at_set CHECK (((ended_at IS NOT NULL) = (status = ANY (ARRAY['completed'::text, 'failed'::text, 'cancelled'::text])))),
    CONSTRAINT loads_entity_check CHECK ((entity = ANY (ARRAY['users'::text, 'companies'::text, 'auto'::text]))),
    CONSTRAINT loads_failed_has_reason CHECK (((failure_code IS NOT NULL) = (status = 'failed'::text))),
    CONSTRAINT loads_origin_check CHECK ((origin = ANY (ARRAY['api_key'::text, 'schedule'::text, 'inbox'::text, 'command_line'::text]))),
    CONSTRAINT loads_pass_check CHECK ((pass = ANY (ARRAY['load'::text, 'dry_run'::text, 'plan'::text, 'guard'::text, 'validate'::text, 'apply'::text]))),
    CONSTRAINT loads_preset_check CHECK ((preset <> ''::text)),
    CONSTRAINT loads_request_id_check CHECK ((length(request_id) <= 128)),
    CONSTRAINT loads_sha256_check CHECK ((octet_length(sha256) = 32)),
    CONSTRAINT loads_status_check CHECK ((status = ANY (ARRAY['queued'::text, 'processing'::text, 'held'::text, 'completed'::text, 'failed'::text, 'cancelled'::text]))),
    CONSTRAINT loads_type_check CHECK ((type = ANY (ARRAY['import'::text, 'bulk_identify_users'::text, 'bulk_identify_companies'::text, 'undo'::text])))
);


--
-- Name: background_jobs; Type: VIEW; Schema: sluice; Owner: -
--

CREATE VIEW sluice.background_jobs AS
 SELECT 'load'::text AS kind,
    loads.load_id AS id,
    loads.job_id,
    loads.environment_id,
    loads.type,
    loads.status,
    loads.accepted_at,
    loads.work_started_at AS started_at,
    loads.ended_at,
    loads.lane_position,
    loads.rows_read AS done,
    loads.total_rows AS total,
    loads.failure_code,
    loads.failure_message,
    loads.request_id,
    loads.origin,
    loads.origin_name,
    loads.filename,
    loads.file_size,
    loads.sha256,
    loads.attempts,
    loads.dry_run,
    json_build_object('read', loads.rows_read, 'inserted', loads.rows_inserted, 'updated', loads.rows_updated, 'unchanged', loads.rows_unchanged, 'removed', loads.rows_removed, 'superseded', loads.rows_superseded, 'rejected', loads.rows_rejected) AS counts
   FROM sluice.loads
UNION ALL
 SELECT 'export'::text AS kind,
    exports.export_id AS id,
    exports.job_id,
    exports.environment_id,
    'export'::text AS type,
    exports.status,
    exports.requested_at AS accepted_at,
    exports.started_at,
    exports.ended_at,
    NULL::bigint AS lane_position,
    exports.rows_written AS done,
        CASE
            WHEN (exports.ended_at IS NULL) THEN COALESCE(exports.rows_expected, exports.rows_written)
            ELSE exports.rows_written
        END AS total,
    exports.failure_code,
    exports.failure_message,
    exports.request_id,
    exports.origin,
    exports.origin_name,
    ((('export-'::text || to_char((exports.requested_at AT TIME ZONE 'UTC'::text), 'YYYY-MM-DD'::text)) || '.'::text) || exports.format) AS filename,
    exports.bytes_written AS file_size,
    NULL::bytea AS sha256,
    exports.attempts,
    false AS dry_run,
    NULL::json AS counts
   FROM sluice.exports
UNION ALL
 SELECT 'deletion'::text AS kind,
    deletions.deletion_id AS id,
    deletions.job_id,
    deletions.environment_id,
    ('delete_'::text || deletions.entity) AS type,
    deletions.status,
    deletions.accepted_at,
    deletions.started_at,
    deletions.ended_at,
    deletions.lane_position,
    ((deletions.ids_deleted + deletions.ids_not_found))::bigint AS done,
    (deletions.ids_requested)::bigint AS total,
    deletions.failure_code,
    deletions.failure_message,
    deletions.request_id,
    deletions.origin,
    deletions.origin_name,
    ((('delete-'::text || deletions.entity) || '-'::text) || to_char((deletions.accepted_at AT TIME ZONE 'UTC'::text), 'YYYY-MM-DD'::text)) AS filename,
    (0)::bigint AS file_size,
    NULL::bytea AS sha256,
    deletions.attempts,
    false AS dry_run,
    json_build_object('requested', deletions.ids_requested, 'deleted', deletions.ids_deleted, 'not_found', deletions.ids_not_found) AS counts
   FROM sluice.deletions;


--
-- Name: change_seq; Type: SEQUENCE; Schema: sluice; Owner: -
--

CREATE SEQUENCE sluice.change_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: changes; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.changes (
    seq bigint DEFAULT nextval('sluice.change_seq'::regclass) NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    "position" bigint NOT NULL,
    position_before bigint NOT NULL,
    load_id bigint,
    load_before bigint,
    first_seen_before timestamp with time zone,
    environment_id integer NOT NULL,
    entity sluice.entity NOT NULL,
    before jsonb,
    is_operator boolean DEFAULT false NOT NULL,
    removed boolean DEFAULT false NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    company_before text COLLATE pg_catalog."C",
    CONSTRAINT changes_erased_check CHECK (((before IS NOT NULL) OR (removed AND (company_before IS NULL))))
)
PARTITION BY RANGE (at);


--
-- Name: changes_2026_11_30; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.changes_2026_11_30 (
    seq bigint DEFAULT nextval('sluice.change_seq'::regclass) NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    "position" bigint NOT NULL,
    position_before bigint NOT NULL,
    load_id bigint,
    load_before bigint,
    first_seen_before timestamp with time zone,
    environment_id integer NOT NULL,
    entity sluice.entity NOT NULL,
    before jsonb,
    is_operator boolean DEFAULT false NOT NULL,
    removed boolean DEFAULT false NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    company_before text COLLATE pg_catalog."C",
    CONSTRAINT changes_erased_check CHECK (((before IS NOT NULL) OR (removed AND (company_before IS NULL))))
);


--
-- Name: changes_2026_12_01; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.changes_2026_12_01 (
    seq bigint DEFAULT nextval('sluice.change_seq'::regclass) NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    "position" bigint NOT NULL,
    position_before bigint NOT NULL,
    load_id bigint,
    load_before bigint,
    first_seen_before timestamp with time zone,
    environment_id integer NOT NULL,
    entity sluice.entity NOT NULL,
    before jsonb,
    is_operator boolean DEFAULT false NOT NULL,
    removed boolean DEFAULT false NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    company_before text COLLATE pg_catalog."C",
    CONSTRAINT changes_erased_check CHECK (((before IS NOT NULL) OR (removed AND (company_before IS NULL))))
);


--
-- Name: changes_2026_12_02; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.changes_2026_12_02 (
    seq bigint DEFAULT nextval('sluice.change_seq'::regclass) NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    "position" bigint NOT NULL,
    position_before bigint NOT NULL,
    load_id bigint,
    load_before bigint,
    first_seen_before timestamp with time zone,
    environment_id integer NOT NULL,
    entity sluice.entity NOT NULL,
    before jsonb,
    is_operator boolean DEFAULT false NOT NULL,
    removed boolean DEFAULT false NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    company_before text COLLATE pg_catalog."C",
    CONSTRAINT changes_erased_check CHECK (((before IS NOT NULL) OR (removed AND (company_before IS NULL))))
);


--
-- Name: changes_2026_12_03; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.changes_2026_12_03 (
    seq bigint DEFAULT nextval('sluice.change_seq'::regclass) NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    "position" bigint NOT NULL,
    position_before bigint NOT NULL,
    load_id bigint,
    load_before bigint,
    first_seen_before timestamp with time zone,
    environment_id integer NOT NULL,
    entity sluice.entity NOT NULL,
    before jsonb,
    is_operator boolean DEFAULT false NOT NULL,
    removed boolean DEFAULT false NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    company_before text COLLATE pg_catalog."C",
    CONSTRAINT changes_erased_check CHECK (((before IS NOT NULL) OR (removed AND (company_before IS NULL))))
);


--
-- Name: changes_2026_12_04; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.changes_2026_12_04 (
    seq bigint DEFAULT nextval('sluice.change_seq'::regclass) NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    "position" bigint NOT NULL,
    position_before bigint NOT NULL,
    load_id bigint,
    load_before bigint,
    first_seen_before timestamp with time zone,
    environment_id integer NOT NULL,
    entity sluice.entity NOT NULL,
    before jsonb,
    is_operator boolean DEFAULT false NOT NULL,
    removed boolean DEFAULT false NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    company_before text COLLATE pg_catalog."C",
    CONSTRAINT changes_erased_check CHECK (((before IS NOT NULL) OR (removed AND (company_before IS NULL))))
);


--
-- Name: changes_2026_12_05; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.changes_2026_12_05 (
    seq bigint DEFAULT nextval('sluice.change_seq'::regclass) NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    "position" bigint NOT NULL,
    position_before bigint NOT NULL,
    load_id bigint,
    load_before bigint,
    first_seen_before timestamp with time zone,
    environment_id integer NOT NULL,
    entity sluice.entity NOT NULL,
    before jsonb,
    is_operator boolean DEFAULT false NOT NULL,
    removed boolean DEFAULT false NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    company_before text COLLATE pg_catalog."C",
    CONSTRAINT changes_erased_check CHECK (((before IS NOT NULL) OR (removed AND (company_before IS NULL))))
);


--
-- Name: changes_2026_12_06; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.changes_2026_12_06 (
    seq bigint DEFAULT nextval('sluice.change_seq'::regclass) NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    "position" bigint NOT NULL,
    position_before bigint NOT NULL,
    load_id bigint,
    load_before bigint,
    first_seen_before timestamp with time zone,
    environment_id integer NOT NULL,
    entity sluice.entity NOT NULL,
    before jsonb,
    is_operator boolean DEFAULT false NOT NULL,
    removed boolean DEFAULT false NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    company_before text COLLATE pg_catalog."C",
    CONSTRAINT changes_erased_check CHECK (((before IS NOT NULL) OR (removed AND (company_before IS NULL))))
);


--
-- Name: changes_2026_12_07; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.changes_2026_12_07 (
    seq bigint DEFAULT nextval('sluice.change_seq'::regclass) NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    "position" bigint NOT NULL,
    position_before bigint NOT NULL,
    load_id bigint,
    load_before bigint,
    first_seen_before timestamp with time zone,
    environment_id integer NOT NULL,
    entity sluice.entity NOT NULL,
    before jsonb,
    is_operator boolean DEFAULT false NOT NULL,
    removed boolean DEFAULT false NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    company_before text COLLATE pg_catalog."C",
    CONSTRAINT changes_erased_check CHECK (((before IS NOT NULL) OR (removed AND (company_before IS NULL))))
);


--
-- Name: changes_default; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.changes_default (
    seq bigint DEFAULT nextval('sluice.change_seq'::regclass) NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    "position" bigint NOT NULL,
    position_before bigint NOT NULL,
    load_id bigint,
    load_before bigint,
    first_seen_before timestamp with time zone,
    environment_id integer NOT NULL,
    entity sluice.entity NOT NULL,
    before jsonb,
    is_operator boolean DEFAULT false NOT NULL,
    removed boolean DEFAULT false NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    company_before text COLLATE pg_catalog."C",
    CONSTRAINT changes_erased_check CHECK (((before IS NOT NULL) OR (removed AND (company_before IS NULL))))
);


--
-- Name: companies; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.companies (
    environment_id integer NOT NULL,
    company_id text NOT NULL COLLATE pg_catalog."C",
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    first_seen_at timestamp with time zone DEFAULT now() NOT NULL,
    last_seen_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    load_id bigint,
    load_chunk integer,
    load_touches integer,
    digest uuid,
    "position" bigint DEFAULT sluice.current_position() NOT NULL
);


--
-- Name: console_links; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.console_links (
    digest bytea NOT NULL,
    environment_id integer NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT console_links_digest_check CHECK ((octet_length(digest) = 32))
);


--
-- Name: console_sessions; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.console_sessions (
    session_id text NOT NULL,
    digest bytea NOT NULL,
    environment_id integer NOT NULL,
    holder text NOT NULL,
    key_id text,
    mark bytea,
    client text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    CONSTRAINT console_sessions_digest_check CHECK ((octet_length(digest) = 32)),
    CONSTRAINT console_sessions_holder_check CHECK (
CASE holder
    WHEN 'key'::text THEN ((key_id IS NOT NULL) AND (mark IS NULL))
    WHEN 'static_key'::text THEN ((key_id IS NULL) AND (mark IS NOT NULL))
    WHEN 'admin'::text THEN ((key_id IS NULL) AND (mark IS NOT NULL))
    WHEN 'link'::text THEN ((key_id IS NULL) AND (mark IS NULL))
    ELSE false
END)
);


--
-- Name: deletion_ids; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.deletion_ids (
    deletion_id bigint NOT NULL,
    "position" integer NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    outcome text,
    events bigint DEFAULT 0 NOT NULL,
    users bigint DEFAULT 0 NOT NULL,
    CONSTRAINT deletion_ids_outcome_check CHECK ((outcome = ANY (ARRAY['deleted'::text, 'not_found'::text])))
);


--
-- Name: deletions_deletion_id_seq; Type: SEQUENCE; Schema: sluice; Owner: -
--

ALTER TABLE sluice.deletions ALTER COLUMN deletion_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME sluice.deletions_deletion_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: environment_uses; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.environment_uses (
    environment_id integer NOT NULL,
    name text NOT NULL
);


--
-- Name: environments_environment_id_seq; Type: SEQUENCE; Schema: sluice; Owner: -
--

ALTER TABLE sluice.environments ALTER COLUMN environment_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME sluice.environments_environment_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: event_ids; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.event_ids (
    environment_id integer NOT NULL,
    event_id text NOT NULL COLLATE pg_catalog."C",
    user_id text NOT NULL COLLATE pg_catalog."C",
    inserted_at timestamp with time zone NOT NULL
);


--
-- Name: event_prunings; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.event_prunings (
    work text NOT NULL,
    ended_at timestamp with time zone NOT NULL,
    error text,
    failing_since timestamp with time zone,
    CONSTRAINT event_prunings_work_check CHECK ((work = ANY (ARRAY['prune'::text, 'append'::text])))
);


--
-- Name: event_retention; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.event_retention (
    environment_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    days integer NOT NULL,
    CONSTRAINT event_retention_days_check CHECK (((days >= 0) AND (days <= 36500))),
    CONSTRAINT event_retention_key_check CHECK ((key <> ''::text))
);


--
-- Name: event_retirements; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.event_retirements (
    retirement_id bigint NOT NULL,
    month date NOT NULL,
    table_name text,
    archives boolean NOT NULL,
    is_whole boolean NOT NULL,
    state text NOT NULL,
    attempt integer DEFAULT 0 NOT NULL,
    revision bigint DEFAULT 0 NOT NULL,
    events_removed bigint DEFAULT 0 NOT NULL,
    began_at timestamp with time zone DEFAULT now() NOT NULL,
    ended_at timestamp with time zone,
    CONSTRAINT event_retirements_ended_when_removed CHECK (((ended_at IS NOT NULL) = (state = 'removed'::text))),
    CONSTRAINT event_retirements_state_check CHECK ((state = ANY (ARRAY['retired'::text, 'archived'::text, 'removed'::text]))),
    CONSTRAINT event_retirements_table_until_removed CHECK (((state = 'removed'::text) OR (table_name IS NOT NULL)))
);


--
-- Name: event_retirements_retirement_id_seq; Type: SEQUENCE; Schema: sluice; Owner: -
--

ALTER TABLE sluice.event_retirements ALTER COLUMN retirement_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME sluice.event_retirements_retirement_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: events; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.events (
    inserted_at timestamp with time zone NOT NULL,
    environment_id integer NOT NULL,
    event_id text NOT NULL COLLATE pg_catalog."C",
    event_type text DEFAULT 'track'::text NOT NULL,
    event_name text NOT NULL COLLATE pg_catalog."C",
    user_id text NOT NULL COLLATE pg_catalog."C",
    company_id text COLLATE pg_catalog."C",
    source text NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    "position" bigint DEFAULT sluice.current_position() NOT NULL
)
PARTITION BY RANGE (inserted_at);


--
-- Name: events_2026_01; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.events_2026_01 (
    inserted_at timestamp with time zone NOT NULL,
    environment_id integer NOT NULL,
    event_id text NOT NULL COLLATE pg_catalog."C",
    event_type text DEFAULT 'track'::text NOT NULL,
    event_name text NOT NULL COLLATE pg_catalog."C",
    user_id text NOT NULL COLLATE pg_catalog."C",
    company_id text COLLATE pg_catalog."C",
    source text NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    "position" bigint DEFAULT sluice.current_position() NOT NULL
);


--
-- Name: events_2026_02; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.events_2026_02 (
    inserted_at timestamp with time zone NOT NULL,
    environment_id integer NOT NULL,
    event_id text NOT NULL COLLATE pg_catalog."C",
    event_type text DEFAULT 'track'::text NOT NULL,
    event_name text NOT NULL COLLATE pg_catalog."C",
    user_id text NOT NULL COLLATE pg_catalog."C",
    company_id text COLLATE pg_catalog."C",
    source text NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    "position" bigint DEFAULT sluice.current_position() NOT NULL
);


--
-- Name: events_2026_03; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.events_2026_03 (
    inserted_at timestamp with time zone NOT NULL,
    environment_id integer NOT NULL,
    event_id text NOT NULL COLLATE pg_catalog."C",
    event_type text DEFAULT 'track'::text NOT NULL,
    event_name text NOT NULL COLLATE pg_catalog."C",
    user_id text NOT NULL COLLATE pg_catalog."C",
    company_id text COLLATE pg_catalog."C",
    source text NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    "position" bigint DEFAULT sluice.current_position() NOT NULL
);


--
-- Name: events_2026_11; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.events_2026_11 (
    inserted_at timestamp with time zone NOT NULL,
    environment_id integer NOT NULL,
    event_id text NOT NULL COLLATE pg_catalog."C",
    event_type text DEFAULT 'track'::text NOT NULL,
    event_name text NOT NULL COLLATE pg_catalog."C",
    user_id text NOT NULL COLLATE pg_catalog."C",
    company_id text COLLATE pg_catalog."C",
    source text NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    "position" bigint DEFAULT sluice.current_position() NOT NULL
);


--
-- Name: events_2026_12; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.events_2026_12 (
    inserted_at timestamp with time zone NOT NULL,
    environment_id integer NOT NULL,
    event_id text NOT NULL COLLATE pg_catalog."C",
    event_type text DEFAULT 'track'::text NOT NULL,
    event_name text NOT NULL COLLATE pg_catalog."C",
    user_id text NOT NULL COLLATE pg_catalog."C",
    company_id text COLLATE pg_catalog."C",
    source text NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    "position" bigint DEFAULT sluice.current_position() NOT NULL
);


--
-- Name: export_files; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.export_files (
    export_id bigint NOT NULL,
    filename text NOT NULL,
    dataset text NOT NULL,
    file_ref text NOT NULL,
    row_count bigint NOT NULL,
    byte_count bigint NOT NULL,
    sha256 bytea NOT NULL,
    CONSTRAINT export_files_dataset_check CHECK ((dataset = ANY (ARRAY['users'::text, 'companies'::text, 'events'::text, 'stream'::text, 'manifest'::text]))),
    CONSTRAINT export_files_sha256_check CHECK ((octet_length(sha256) = 32))
);


--
-- Name: exports_export_id_seq; Type: SEQUENCE; Schema: sluice; Owner: -
--

ALTER TABLE sluice.exports ALTER COLUMN export_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME sluice.exports_export_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: lake_tables; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.lake_tables (
    environment_id integer NOT NULL,
    folder uuid NOT NULL,
    location text,
    version bigint DEFAULT 0 NOT NULL,
    fields jsonb DEFAULT '{"last": 0, "schema": 0, "properties": []}'::jsonb NOT NULL,
    metadata_ref text,
    changed_at timestamp with time zone
);


--
-- Name: iceberg_tables; Type: VIEW; Schema: sluice; Owner: -
--

CREATE VIEW sluice.iceberg_tables AS
 SELECT 'sluice'::character varying(255) AS catalog_name,
    (e.name)::character varying(255) AS table_namespace,
    'events'::character varying(255) AS table_name,
    (((t.location || '/'::text) || t.metadata_ref))::character varying(1000) AS metadata_location,
    NULL::character varying(1000) AS previous_metadata_location,
    'TABLE'::character varying(5) AS iceberg_type
   FROM (sluice.lake_tables t
     JOIN sluice.environments e USING (environment_id))
  WHERE (t.metadata_ref IS NOT NULL);


--
-- Name: iceberg_namespace_properties; Type: VIEW; Schema: sluice; Owner: -
--

CREATE VIEW sluice.iceberg_namespace_properties AS
 SELECT DISTINCT 'sluice'::character varying(255) AS catalog_name,
    iceberg_tables.table_namespace AS namespace,
    'exists'::character varying(255) AS property_key,
    'true'::character varying(1000) AS property_value
   FROM sluice.iceberg_tables;


--
-- Name: idempotency_keys; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.idempotency_keys (
    environment_id integer NOT NULL,
    idempotency_key text NOT NULL,
    request_digest bytea NOT NULL,
    job_id uuid,
    answer json,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);


--
-- Name: inbox_files; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.inbox_files (
    file_id uuid NOT NULL,
    inbox_id uuid NOT NULL,
    environment_id integer NOT NULL,
    arrival bigint NOT NULL,
    folder text NOT NULL,
    name text NOT NULL,
    inode numeric(20,0) NOT NULL,
    size bigint NOT NULL,
    modified_ns numeric(20,0) NOT NULL,
    options jsonb NOT NULL,
    state text NOT NULL,
    taken_at timestamp with time zone DEFAULT now() NOT NULL,
    sha256 bytea,
    job_id uuid,
    is_duplicate boolean DEFAULT false NOT NULL,
    reasons jsonb DEFAULT '[]'::jsonb NOT NULL,
    outcome text,
    placed_as text,
    concluded_at timestamp with time zone,
    CONSTRAINT inbox_files_concluded_at_set CHECK (((concluded_at IS NOT NULL) = (state = 'concluded'::text))),
    CONSTRAINT inbox_files_concluded_has_outcome CHECK (((state <> 'concluded'::text) OR (outcome IS NOT NULL))),
    CONSTRAINT inbox_files_folder_check CHECK ((folder = ANY (ARRAY[''::text, 'users'::text, 'companies'::text]))),
    CONSTRAINT inbox_files_loading_has_job CHECK (((state <> 'loading'::text) OR ((job_id IS NOT NULL) AND (sha256 IS NOT NULL)))),
    CONSTRAINT inbox_files_name_check CHECK (((name <> ''::text) AND (POSITION(('/'::text) IN (name)) = 0))),
    CONSTRAINT inbox_files_outcome_check CHECK ((outcome = ANY (ARRAY['done'::text, 'failed'::text]))),
    CONSTRAINT inbox_files_outcome_has_place CHECK (((outcome IS NULL) = (placed_as IS NULL))),
    CONSTRAINT inbox_files_sha256_check CHECK ((octet_length(sha256) = 32)),
    CONSTRAINT inbox_files_state_check CHECK ((state = ANY (ARRAY['loading'::text, 'refused'::text, 'concluded'::text])))
);


--
-- Name: inbox_files_arrival_seq; Type: SEQUENCE; Schema: sluice; Owner: -
--

ALTER TABLE sluice.inbox_files ALTER COLUMN arrival ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME sluice.inbox_files_arrival_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: keyed_items; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.keyed_items (
    environment_id integer NOT NULL,
    kind text NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    display_name text NOT NULL,
    data_type text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT keyed_items_key_check CHECK ((key <> ''::text)),
    CONSTRAINT keyed_items_kind_check CHECK ((kind = ANY (ARRAY['resource_center_modules'::text, 'checklists'::text, 'features'::text])))
);


--
-- Name: lake_columns; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.lake_columns (
    environment_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL,
    CONSTRAINT lake_columns_type_check CHECK ((type = ANY (ARRAY['string'::text, 'numeric'::text, 'boolean'::text, 'date'::text])))
);


--
-- Name: lake_files; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.lake_files (
    file_id bigint NOT NULL,
    environment_id integer NOT NULL,
    kind text NOT NULL,
    month date,
    state text DEFAULT 'writing'::text NOT NULL,
    is_hot boolean DEFAULT false NOT NULL,
    retirement_id bigint,
    file_ref text NOT NULL,
    version bigint,
    row_count bigint,
    file_count integer,
    byte_count bigint,
    sha256 bytea,
    first_at timestamp with time zone,
    last_at timestamp with time zone,
    filter bytea,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT lake_files_kind_check CHECK ((kind = ANY (ARRAY['data'::text, 'manifest'::text, 'list'::text, 'metadata'::text]))),
    CONSTRAINT lake_files_sha256_check CHECK ((octet_length(sha256) = 32)),
    CONSTRAINT lake_files_state_check CHECK ((state = ANY (ARRAY['writing'::text, 'stored'::text, 'replaced'::text]))),
    CONSTRAINT lake_files_stored_is_whole CHECK (((state <> 'stored'::text) OR (kind <> 'data'::text) OR (num_nonnulls(row_count, byte_count, sha256, month, first_at, last_at) = 6)))
);
ALTER TABLE ONLY sluice.lake_files ALTER COLUMN filter SET STORAGE EXTERNAL;


--
-- Name: lake_files_file_id_seq; Type: SEQUENCE; Schema: sluice; Owner: -
--

ALTER TABLE sluice.lake_files ALTER COLUMN file_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME sluice.lake_files_file_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: lake_months; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.lake_months (
    environment_id integer NOT NULL,
    month date NOT NULL,
    cursor text,
    revision bigint DEFAULT 0 NOT NULL,
    removals bigint DEFAULT 0 NOT NULL,
    appends integer DEFAULT 0 NOT NULL,
    written_removals bigint DEFAULT 0 NOT NULL,
    written_at timestamp with time zone
);


--
-- Name: load_chunk_keys; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.load_chunk_keys (
    load_id bigint NOT NULL,
    chunk_no integer NOT NULL,
    entity text NOT NULL,
    written bigint[] DEFAULT '{}'::bigint[] NOT NULL,
    unchanged bigint[] DEFAULT '{}'::bigint[] NOT NULL,
    repeated bigint[] DEFAULT '{}'::bigint[] NOT NULL,
    CONSTRAINT load_chunk_keys_entity_check CHECK ((entity = ANY (ARRAY['users'::text, 'companies'::text, 'events'::text])))
);


--
-- Name: load_chunks; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.load_chunks (
    load_id bigint NOT NULL,
    chunk_no integer NOT NULL,
    byte_start bigint NOT NULL,
    byte_end bigint NOT NULL,
    first_row bigint NOT NULL,
    first_line bigint NOT NULL,
    row_count integer NOT NULL,
    oversized boolean NOT NULL,
    rows_inserted integer,
    rows_updated integer,
    rows_unchanged integer,
    rows_removed integer,
    rows_superseded integer,
    rows_rejected integer,
    done_at timestamp with time zone,
    worker text,
    attempts integer DEFAULT 0 NOT NULL,
    losses integer DEFAULT 0 NOT NULL,
    positions bigint[] DEFAULT '{}'::bigint[] NOT NULL,
    CONSTRAINT load_chunks_done_balances CHECK (((done_at IS NULL) OR ((row_count = (((((rows_inserted + rows_updated) + rows_unchanged) + rows_removed) + rows_superseded) + rows_rejected)) IS TRUE))),
    CONSTRAINT load_chunks_range_check CHECK (((byte_start >= 0) AND (byte_end > byte_start)))
);


--
-- Name: load_event_replays; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.load_event_replays (
    load_id bigint NOT NULL,
    chunk_no integer NOT NULL,
    key_hash bigint NOT NULL,
    rows_before bigint NOT NULL,
    is_written boolean NOT NULL,
    CONSTRAINT load_event_replays_rows_before_check CHECK ((rows_before >= 0))
);


--
-- Name: load_findings; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.load_findings (
    load_id bigint NOT NULL,
    entity text NOT NULL,
    property text NOT NULL,
    rule text NOT NULL,
    otherwise text NOT NULL,
    records bigint NOT NULL,
    CONSTRAINT load_findings_records_check CHECK ((records > 0))
);


--
-- Name: load_guards; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.load_guards (
    load_id bigint NOT NULL,
    max_errors bigint,
    max_changed bigint,
    max_removed_values bigint,
    guard jsonb,
    held_at timestamp with time zone,
    held_for jsonb,
    decided_at timestamp with time zone,
    decided_by jsonb,
    CONSTRAINT load_guards_decided_was_held CHECK (((decided_at IS NULL) OR (held_at IS NOT NULL))),
    CONSTRAINT load_guards_held_has_guard CHECK (((held_at IS NULL) OR (guard IS NOT NULL))),
    CONSTRAINT load_guards_held_is_explained CHECK (((held_for IS NOT NULL) = (held_at IS NOT NULL)))
);


--
-- Name: load_kinds; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.load_kinds (
    load_id bigint NOT NULL,
    kind text NOT NULL,
    rows_inserted bigint DEFAULT 0 NOT NULL,
    rows_updated bigint DEFAULT 0 NOT NULL,
    rows_unchanged bigint DEFAULT 0 NOT NULL,
    rows_removed bigint DEFAULT 0 NOT NULL,
    rows_superseded bigint DEFAULT 0 NOT NULL,
    rows_rejected bigint DEFAULT 0 NOT NULL,
    CONSTRAINT load_kinds_counts_check CHECK ((LEAST(rows_inserted, rows_updated, rows_unchanged, rows_removed, rows_superseded, rows_rejected) >= 0)),
    CONSTRAINT load_kinds_kind_check CHECK ((kind = ANY (ARRAY['identify_user'::text, 'identify_company'::text, 'track'::text, 'page_view'::text, 'interaction'::text, 'track_feature'::text, 'session_start'::text, 'unknown'::text])))
);


--
-- Name: load_lineage; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.load_lineage (
    load_id bigint NOT NULL,
    duplicate_of uuid,
    file_of uuid,
    file_at timestamp with time zone,
    mends bigint,
    taken_back_by bigint
);


--
-- Name: load_mirrors; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.load_mirrors (
    load_id bigint NOT NULL,
    profiles bigint NOT NULL,
    missing bigint NOT NULL,
    allowed bigint NOT NULL,
    done bigint DEFAULT 0 NOT NULL,
    kept_because text,
    CONSTRAINT load_mirrors_kept_removes_none CHECK (((kept_because IS NULL) OR (done = 0)))
);


--
-- Name: load_missing; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.load_missing (
    load_id bigint NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C"
);


--
-- Name: load_plans; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.load_plans (
    load_id bigint NOT NULL,
    planned_at timestamp with time zone NOT NULL,
    plan_cursor pg_snapshot NOT NULL,
    plan jsonb,
    plan_ended_at timestamp with time zone,
    on_drift text,
    applied_at timestamp with time zone,
    CONSTRAINT load_plans_applied_has_plan CHECK (((applied_at IS NULL) OR (plan IS NOT NULL))),
    CONSTRAINT load_plans_has_time CHECK (((plan IS NOT NULL) = (plan_ended_at IS NOT NULL))),
    CONSTRAINT load_plans_on_drift_check CHECK ((on_drift = ANY (ARRAY['refuse'::text, 'proceed'::text])))
);


--
-- Name: load_rejects; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.load_rejects (
    load_id bigint NOT NULL,
    row_number bigint NOT NULL,
    line_number bigint NOT NULL,
    byte_offset bigint NOT NULL,
    column_name text,
    error_code text NOT NULL,
    message text NOT NULL,
    raw bytea NOT NULL,
    kind text,
    cause bigint NOT NULL,
    shape text NOT NULL
);


--
-- Name: load_replays; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.load_replays (
    load_id bigint NOT NULL,
    entity text NOT NULL,
    key_hash bigint NOT NULL,
    CONSTRAINT load_replays_entity_check CHECK ((entity = ANY (ARRAY['users'::text, 'companies'::text])))
);


--
-- Name: load_rules; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.load_rules (
    load_id bigint NOT NULL,
    environment_id integer NOT NULL,
    version integer NOT NULL
);


--
-- Name: load_undos; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.load_undos (
    load_id bigint NOT NULL,
    undoes bigint[] NOT NULL
);


--
-- Name: loads_load_id_seq; Type: SEQUENCE; Schema: sluice; Owner: -
--

ALTER TABLE sluice.loads ALTER COLUMN load_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME sluice.loads_load_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: migrations; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.migrations (
    name text NOT NULL,
    digest text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);


--
-- Name: notification_attempts; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.notification_attempts (
    delivery_id bigint NOT NULL,
    attempt integer NOT NULL,
    begun_at timestamp with time zone NOT NULL,
    took_ms integer NOT NULL,
    status integer,
    error text,
    CONSTRAINT notification_attempts_error_check CHECK ((length(error) <= 1000))
);


--
-- Name: notification_deliveries; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.notification_deliveries (
    delivery_id bigint NOT NULL,
    public_id uuid NOT NULL,
    event_id uuid NOT NULL,
    subscription_id uuid,
    channel text NOT NULL,
    target text NOT NULL,
    state text DEFAULT 'pending'::text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    last_attempt_at timestamp with time zone,
    last_took_ms integer,
    last_status integer,
    last_error text,
    delivered_at timestamp with time zone,
    CONSTRAINT notification_deliveries_attempts_check CHECK ((attempts >= 0)),
    CONSTRAINT notification_deliveries_channel_check CHECK ((channel = ANY (ARRAY['webhook'::text, 'email'::text]))),
    CONSTRAINT notification_deliveries_delivered_check CHECK (((state <> 'delivered'::text) OR (delivered_at IS NOT NULL))),
    CONSTRAINT notification_deliveries_error_check CHECK ((length(last_error) <= 1000)),
    CONSTRAINT notification_deliveries_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'delivered'::text, 'dead'::text]))),
    CONSTRAINT notification_deliveries_webhook_subscribed CHECK (((channel = 'email'::text) OR (subscription_id IS NOT NULL)))
);


--
-- Name: notification_deliveries_delivery_id_seq; Type: SEQUENCE; Schema: sluice; Owner: -
--

ALTER TABLE sluice.notification_deliveries ALTER COLUMN delivery_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME sluice.notification_deliveries_delivery_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: notification_events; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.notification_events (
    event_id uuid NOT NULL,
    environment_id integer NOT NULL,
    type text NOT NULL,
    job_id uuid,
    body text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT notification_events_job_set CHECK (((job_id IS NULL) = ((type = ANY (ARRAY['ping'::text, 'file.refused'::text])) OR (type ~~ 'schedule.%'::text))))
);


--
-- Name: notification_subscriptions; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.notification_subscriptions (
    subscription_id uuid NOT NULL,
    environment_id integer NOT NULL,
    channel text NOT NULL,
    target text NOT NULL,
    outcomes text[] NOT NULL,
    job_kinds text[] NOT NULL,
    secret text,
    previous_secret text,
    previous_secret_until timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    disabled_at timestamp with time zone,
    disabled_reason text,
    removed_at timestamp with time zone,
    CONSTRAINT notification_subscriptions_channel_check CHECK ((channel = ANY (ARRAY['webhook'::text, 'email'::text]))),
    CONSTRAINT notification_subscriptions_disabled_check CHECK (((disabled_reason IS NOT NULL) = (disabled_at IS NOT NULL))),
    CONSTRAINT notification_subscriptions_job_kinds_check CHECK (((job_kinds <@ ARRAY['load'::text, 'export'::text, 'schedule'::text]) AND (cardinality(job_kinds) > 0))),
    CONSTRAINT notification_subscriptions_outcomes_check CHECK (((outcomes <@ ARRAY['completed'::text, 'completed_with_rejects'::text, 'held'::text, 'failed'::text, 'cancelled'::text]) AND (cardinality(outcomes) > 0))),
    CONSTRAINT notification_subscriptions_previous_check CHECK (((previous_secret IS NOT NULL) = (previous_secret_until IS NOT NULL))),
    CONSTRAINT notification_subscriptions_secret_check CHECK ((secret ~ '^whsec_[A-Za-z0-9+/]{43}=$'::text)),
    CONSTRAINT notification_subscriptions_secret_set CHECK (((secret IS NOT NULL) = ((channel = 'webhook'::text) AND (removed_at IS NULL))))
);


--
-- Name: personal_loads; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.personal_loads (
    load_id bigint NOT NULL
);


--
-- Name: planned_chunks; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.planned_chunks (
    load_id bigint NOT NULL,
    chunk_no integer NOT NULL,
    entity text NOT NULL,
    rows_new bigint DEFAULT 0 NOT NULL,
    rows_changed bigint DEFAULT 0 NOT NULL,
    rows_removed bigint DEFAULT 0 NOT NULL,
    properties jsonb DEFAULT '{}'::jsonb NOT NULL,
    companies text[] DEFAULT '{}'::text[] NOT NULL,
    CONSTRAINT planned_chunks_entity_check CHECK ((entity = ANY (ARRAY['users'::text, 'companies'::text])))
);


--
-- Name: planned_events; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.planned_events (
    load_id bigint NOT NULL,
    event_name text COLLATE pg_catalog."C",
    day date,
    events bigint NOT NULL,
    CONSTRAINT planned_events_by_name_or_day CHECK ((num_nonnulls(event_name, day) = 1))
);


--
-- Name: planned_rows; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.planned_rows (
    load_id bigint NOT NULL,
    chunk_no integer NOT NULL,
    is_new boolean NOT NULL,
    is_repeated boolean DEFAULT false NOT NULL,
    entity text NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    before jsonb,
    company_before text COLLATE pg_catalog."C",
    after jsonb,
    company_after text COLLATE pg_catalog."C",
    CONSTRAINT planned_rows_entity_check CHECK ((entity = ANY (ARRAY['users'::text, 'companies'::text]))),
    CONSTRAINT planned_rows_new_has_no_before CHECK ((is_new = (before IS NULL)))
);


--
-- Name: properties; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.properties (
    property_id integer NOT NULL,
    environment_id integer NOT NULL,
    entity text NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    display_name text NOT NULL,
    data_type text NOT NULL,
    is_auto_property boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT properties_data_type_check CHECK ((data_type = ANY (ARRAY['string'::text, 'numeric'::text, 'boolean'::text, 'date'::text]))),
    CONSTRAINT properties_entity_check CHECK ((entity = ANY (ARRAY['users'::text, 'companies'::text, 'events'::text, 'event_names'::text])))
);


--
-- Name: properties_property_id_seq; Type: SEQUENCE; Schema: sluice; Owner: -
--

ALTER TABLE sluice.properties ALTER COLUMN property_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME sluice.properties_property_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: rates; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.rates (
    environment_id integer NOT NULL,
    minutes integer NOT NULL,
    begins_at timestamp with time zone NOT NULL,
    accepted bigint DEFAULT 0 NOT NULL,
    unchanged bigint DEFAULT 0 NOT NULL,
    rejected bigint DEFAULT 0 NOT NULL
);


--
-- Name: received_files; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.received_files (
    file_ref text NOT NULL,
    received_at timestamp with time zone DEFAULT now() NOT NULL,
    condemned_at timestamp with time zone
);


--
-- Name: rules; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.rules (
    environment_id integer NOT NULL,
    version integer NOT NULL,
    document jsonb NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL,
    applied_by text,
    CONSTRAINT rules_document_check CHECK ((jsonb_typeof(document) = 'object'::text)),
    CONSTRAINT rules_version_check CHECK ((version > 0))
);


--
-- Name: schedule_memory; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.schedule_memory (
    environment_id integer NOT NULL,
    schedule_name text NOT NULL,
    item text NOT NULL,
    version text NOT NULL,
    loaded_at timestamp with time zone DEFAULT now() NOT NULL
);


--
-- Name: schedule_run_items; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.schedule_run_items (
    run_id bigint NOT NULL,
    item text NOT NULL,
    version text,
    job_id uuid,
    is_new boolean DEFAULT false NOT NULL,
    error_code text,
    error_message text,
    CONSTRAINT schedule_run_items_job_or_error CHECK (((job_id IS NULL) = (error_code IS NOT NULL)))
);


--
-- Name: schedule_runs; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.schedule_runs (
    run_id bigint NOT NULL,
    environment_id integer NOT NULL,
    schedule_name text NOT NULL,
    due_at timestamp with time zone NOT NULL,
    cause text NOT NULL,
    status text DEFAULT 'queued'::text NOT NULL,
    definition jsonb NOT NULL,
    missed integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    last_error text,
    range_from timestamp with time zone,
    range_to timestamp with time zone,
    delivered_to text,
    reason_code text,
    reason text,
    CONSTRAINT schedule_runs_cause_check CHECK ((cause = ANY (ARRAY['due'::text, 'made_up'::text, 'asked'::text]))),
    CONSTRAINT schedule_runs_ended_at_set CHECK (((ended_at IS NOT NULL) = (status <> ALL (ARRAY['queued'::text, 'waiting'::text])))),
    CONSTRAINT schedule_runs_has_reason CHECK (((reason_code IS NOT NULL) OR (status <> ALL (ARRAY['skipped'::text, 'failed'::text])))),
    CONSTRAINT schedule_runs_status_check CHECK ((status = ANY (ARRAY['queued'::text, 'waiting'::text, 'completed'::text, 'completed_with_rejects'::text, 'unchanged'::text, 'skipped'::text, 'failed'::text])))
);


--
-- Name: schedule_runs_run_id_seq; Type: SEQUENCE; Schema: sluice; Owner: -
--

ALTER TABLE sluice.schedule_runs ALTER COLUMN run_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME sluice.schedule_runs_run_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: schedules; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.schedules (
    environment_id integer NOT NULL,
    schedule_name text NOT NULL,
    considered_until timestamp with time zone NOT NULL,
    cursor text,
    paused_at timestamp with time zone,
    definition jsonb
);


--
-- Name: segments; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.segments (
    segment_id integer NOT NULL,
    environment_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    title text NOT NULL,
    usage text NOT NULL,
    category text NOT NULL,
    is_hidden boolean NOT NULL,
    is_protected boolean NOT NULL,
    status text NOT NULL,
    made_by text DEFAULT 'file'::text NOT NULL,
    definition json NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT segments_definition_check CHECK ((json_typeof(definition) = 'object'::text)),
    CONSTRAINT segments_key_check CHECK ((key <> ''::text)),
    CONSTRAINT segments_made_by_check CHECK ((made_by = ANY (ARRAY['file'::text, 'api'::text])))
);


--
-- Name: segments_segment_id_seq; Type: SEQUENCE; Schema: sluice; Owner: -
--

ALTER TABLE sluice.segments ALTER COLUMN segment_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME sluice.segments_segment_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: signing_keys; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.signing_keys (
    purpose text NOT NULL,
    secret bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT signing_keys_secret_check CHECK ((octet_length(secret) = 32))
);


--
-- Name: suppression_keys; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.suppression_keys (
    environment_id integer NOT NULL,
    secret bytea NOT NULL,
    CONSTRAINT suppression_keys_secret_length CHECK ((octet_length(secret) = 32))
);


--
-- Name: suppressions; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.suppressions (
    environment_id integer NOT NULL,
    id_hash bytea NOT NULL,
    suppressed_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT suppressions_hash_length CHECK ((octet_length(id_hash) = 32))
);


--
-- Name: survey_modules; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.survey_modules (
    module_id integer NOT NULL,
    survey_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    "position" integer NOT NULL,
    type text NOT NULL,
    question text NOT NULL,
    CONSTRAINT survey_modules_key_check CHECK ((key <> ''::text)),
    CONSTRAINT survey_modules_position_check CHECK (("position" > 0))
);


--
-- Name: survey_modules_module_id_seq; Type: SEQUENCE; Schema: sluice; Owner: -
--

ALTER TABLE sluice.survey_modules ALTER COLUMN module_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME sluice.survey_modules_module_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: surveys; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.surveys (
    survey_id integer NOT NULL,
    environment_id integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    title text NOT NULL,
    platform text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT surveys_key_check CHECK ((key <> ''::text))
);


--
-- Name: surveys_survey_id_seq; Type: SEQUENCE; Schema: sluice; Owner: -
--

ALTER TABLE sluice.surveys ALTER COLUMN survey_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME sluice.surveys_survey_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: tasks; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.tasks (
    task_id bigint NOT NULL,
    kind text NOT NULL,
    subject_id bigint NOT NULL,
    part integer DEFAULT 0 NOT NULL,
    environment_id integer NOT NULL,
    group_id uuid,
    job_id uuid,
    request_id text,
    attempt integer DEFAULT 0 NOT NULL,
    lease_until timestamp with time zone,
    claimed_at timestamp with time zone,
    worker text,
    waiting_since timestamp with time zone DEFAULT now() NOT NULL,
    not_before timestamp with time zone DEFAULT now() NOT NULL,
    notified_at timestamp with time zone,
    failures integer DEFAULT 0 NOT NULL,
    losses integer DEFAULT 0 NOT NULL,
    last_error text,
    CONSTRAINT tasks_counts_check CHECK (((attempt >= 0) AND (failures >= 0) AND (losses >= 0))),
    CONSTRAINT tasks_leased_has_attempt CHECK (((lease_until IS NULL) OR (attempt > 0)))
);


--
-- Name: tasks_task_id_seq; Type: SEQUENCE; Schema: sluice; Owner: -
--

ALTER TABLE sluice.tasks ALTER COLUMN task_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME sluice.tasks_task_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: titled_items; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.titled_items (
    item_id integer NOT NULL,
    environment_id integer NOT NULL,
    kind text NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    title text NOT NULL,
    type text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT titled_items_embed_type_check CHECK (((kind <> 'embeds'::text) OR (type = ANY (ARRAY['banner'::text, 'card'::text])))),
    CONSTRAINT titled_items_key_check CHECK ((key <> ''::text)),
    CONSTRAINT titled_items_kind_check CHECK ((kind = ANY (ARRAY['embeds'::text, 'flows'::text, 'banners'::text, 'spotlights'::text])))
);


--
-- Name: titled_items_item_id_seq; Type: SEQUENCE; Schema: sluice; Owner: -
--

ALTER TABLE sluice.titled_items ALTER COLUMN item_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME sluice.titled_items_item_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: uploads; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.uploads (
    upload_id uuid NOT NULL,
    environment_id integer NOT NULL,
    filename text,
    content_type text,
    is_gzip boolean NOT NULL,
    file_size bigint NOT NULL,
    sha256 text NOT NULL,
    file_ref text,
    file_of bigint,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT uploads_have_one_file CHECK (((file_ref IS NULL) <> (file_of IS NULL)))
);


--
-- Name: users; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.users (
    environment_id integer NOT NULL,
    user_id text NOT NULL COLLATE pg_catalog."C",
    company_id text COLLATE pg_catalog."C",
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    first_seen_at timestamp with time zone DEFAULT now() NOT NULL,
    last_seen_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    load_id bigint,
    load_chunk integer,
    load_touches integer,
    digest uuid,
    "position" bigint DEFAULT sluice.current_position() NOT NULL
);


--
-- Name: workers; Type: TABLE; Schema: sluice; Owner: -
--

CREATE TABLE sluice.workers (
    worker_id uuid NOT NULL,
    host text NOT NULL,
    pid integer NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    seen_at timestamp with time zone DEFAULT now() NOT NULL
);


--
-- Name: changes_2026_11_30; Type: TABLE ATTACH; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.changes ATTACH PARTITION sluice.changes_2026_11_30 FOR VALUES FROM ('2026-11-30 00:00:00+00') TO ('2026-12-01 00:00:00+00');


--
-- Name: changes_2026_12_01; Type: TABLE ATTACH; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.changes ATTACH PARTITION sluice.changes_2026_12_01 FOR VALUES FROM ('2026-12-01 00:00:00+00') TO ('2026-12-02 00:00:00+00');


--
-- Name: changes_2026_12_02; Type: TABLE ATTACH; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.changes ATTACH PARTITION sluice.changes_2026_12_02 FOR VALUES FROM ('2026-12-02 00:00:00+00') TO ('2026-12-03 00:00:00+00');


--
-- Name: changes_2026_12_03; Type: TABLE ATTACH; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.changes ATTACH PARTITION sluice.changes_2026_12_03 FOR VALUES FROM ('2026-12-03 00:00:00+00') TO ('2026-12-04 00:00:00+00');


--
-- Name: changes_2026_12_04; Type: TABLE ATTACH; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.changes ATTACH PARTITION sluice.changes_2026_12_04 FOR VALUES FROM ('2026-12-04 00:00:00+00') TO ('2026-12-05 00:00:00+00');


--
-- Name: changes_2026_12_05; Type: TABLE ATTACH; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.changes ATTACH PARTITION sluice.changes_2026_12_05 FOR VALUES FROM ('2026-12-05 00:00:00+00') TO ('2026-12-06 00:00:00+00');


--
-- Name: changes_2026_12_06; Type: TABLE ATTACH; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.changes ATTACH PARTITION sluice.changes_2026_12_06 FOR VALUES FROM ('2026-12-06 00:00:00+00') TO ('2026-12-07 00:00:00+00');


--
-- Name: changes_2026_12_07; Type: TABLE ATTACH; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.changes ATTACH PARTITION sluice.changes_2026_12_07 FOR VALUES FROM ('2026-12-07 00:00:00+00') TO ('2026-12-08 00:00:00+00');


--
-- Name: changes_default; Type: TABLE ATTACH; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.changes ATTACH PARTITION sluice.changes_default DEFAULT;


--
-- Name: events_2026_01; Type: TABLE ATTACH; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.events ATTACH PARTITION sluice.events_2026_01 FOR VALUES FROM ('2026-01-01 00:00:00+00') TO ('2026-02-01 00:00:00+00');


--
-- Name: events_2026_02; Type: TABLE ATTACH; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.events ATTACH PARTITION sluice.events_2026_02 FOR VALUES FROM ('2026-02-01 00:00:00+00') TO ('2026-03-01 00:00:00+00');


--
-- Name: events_2026_03; Type: TABLE ATTACH; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.events ATTACH PARTITION sluice.events_2026_03 FOR VALUES FROM ('2026-03-01 00:00:00+00') TO ('2026-04-01 00:00:00+00');


--
-- Name: events_2026_11; Type: TABLE ATTACH; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.events ATTACH PARTITION sluice.events_2026_11 FOR VALUES FROM ('2026-11-01 00:00:00+00') TO ('2026-12-01 00:00:00+00');


--
-- Name: events_2026_12; Type: TABLE ATTACH; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.events ATTACH PARTITION sluice.events_2026_12 FOR VALUES FROM ('2026-12-01 00:00:00+00') TO ('2027-01-01 00:00:00+00');


--
-- Data for Name: api_keys; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.api_keys VALUES ('d7aq77qcqeg6', 1, 'first key', '\xf240d0f4b04af606673c7a750f746c00ec46878e08ce55b17290ee9a63a137da', '{ingest,import,export,read,delete}', '2026-11-30 07:10:12.602913+00', NULL, NULL, NULL);


--
-- Data for Name: change_log; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.change_log VALUES (true, '{[0,)}', 0, '2026-11-30 07:10:08.671015+00', 799);


--
-- Data for Name: changes_2026_11_30; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.changes_2026_11_30 VALUES (1, '2026-11-30 07:10:32.173725+00', 766, 747, 3, 1, NULL, 1, 'users', '{"name": "User, 10", "plan": "free"}', false, false, 'u10', 'c2');
INSERT INTO sluice.changes_2026_11_30 VALUES (2, '2026-11-30 07:10:32.173725+00', 766, 747, 3, 1, NULL, 1, 'users', '{"name": "User, 12", "plan": "free"}', false, false, 'u12', 'c0');
INSERT INTO sluice.changes_2026_11_30 VALUES (3, '2026-11-30 07:10:32.173725+00', 766, 747, 3, 1, NULL, 1, 'users', '{"name": "User, 14", "plan": "free"}', false, false, 'u14', 'c2');
INSERT INTO sluice.changes_2026_11_30 VALUES (4, '2026-11-30 07:10:32.173725+00', 766, 747, 3, 1, NULL, 1, 'users', '{"name": "User, 16", "plan": "free"}', false, false, 'u16', 'c0');
INSERT INTO sluice.changes_2026_11_30 VALUES (5, '2026-11-30 07:10:32.173725+00', 766, 747, 3, 1, NULL, 1, 'users', '{"name": "User, 18", "plan": "free"}', false, false, 'u18', 'c2');
INSERT INTO sluice.changes_2026_11_30 VALUES (6, '2026-11-30 07:10:32.173725+00', 766, 747, 3, 1, NULL, 1, 'users', '{"name": "User, 2", "plan": "free"}', false, false, 'u2', 'c2');
INSERT INTO sluice.changes_2026_11_30 VALUES (7, '2026-11-30 07:10:32.173725+00', 766, 747, 3, 1, NULL, 1, 'users', '{"name": "User, 20", "plan": "free"}', false, false, 'u20', 'c0');
INSERT INTO sluice.changes_2026_11_30 VALUES (8, '2026-11-30 07:10:32.173725+00', 766, 747, 3, 1, NULL, 1, 'users', '{"name": "User, 22", "plan": "free"}', false, false, 'u22', 'c2');
INSERT INTO sluice.changes_2026_11_30 VALUES (9, '2026-11-30 07:10:32.173725+00', 766, 747, 3, 1, NULL, 1, 'users', '{"name": "User, 24", "plan": "free"}', false, false, 'u24', 'c0');
INSERT INTO sluice.changes_2026_11_30 VALUES (10, '2026-11-30 07:10:32.173725+00', 766, 747, 3, 1, NULL, 1, 'users', '{"name": "User, 26", "plan": "free"}', false, false, 'u26', 'c2');
INSERT INTO sluice.changes_2026_11_30 VALUES (11, '2026-11-30 07:10:32.173725+00', 766, 747, 3, 1, NULL, 1, 'users', '{"name": "User, 28", "plan": "free"}', false, false, 'u28', 'c0');
INSERT INTO sluice.changes_2026_11_30 VALUES (12, '2026-11-30 07:10:32.173725+00', 766, 747, 3, 1, NULL, 1, 'users', '{"name": "User, 30", "plan": "free"}', false, false, 'u30', 'c2');
INSERT INTO sluice.changes_2026_11_30 VALUES (13, '2026-11-30 07:10:32.173725+00', 766, 747, 3, 1, NULL, 1, 'users', '{"name": "User, 32", "plan": "free"}', false, false, 'u32', 'c0');
INSERT INTO sluice.changes_2026_11_30 VALUES (14, '2026-11-30 07:10:32.173725+00', 766, 747, 3, 1, NULL, 1, 'users', '{"name": "User, 34", "plan": "free"}', false, false, 'u34', 'c2');
INSERT INTO sluice.changes_2026_11_30 VALUES (15, '2026-11-30 07:10:32.173725+00', 766, 747, 3, 1, NULL, 1, 'users', '{"name": "User, 36", "plan": "free"}', false, false, 'u36', 'c0');
INSERT INTO sluice.changes_2026_11_30 VALUES (16, '2026-11-30 07:10:32.173725+00', 766, 747, 3, 1, NULL, 1, 'users', '{"name": "User, 38", "plan": "free"}', false, false, 'u38', 'c2');
INSERT INTO sluice.changes_2026_11_30 VALUES (17, '2026-11-30 07:10:32.173725+00', 766, 747, 3, 1, NULL, 1, 'users', '{"name": "User, 4", "plan": "free"}', false, false, 'u4', 'c0');
INSERT INTO sluice.changes_2026_11_30 VALUES (19, '2026-11-30 07:10:32.173725+00', 766, 747, 3, 1, NULL, 1, 'users', '{"name": "User, 6", "plan": "free"}', false, false, 'u6', 'c2');
INSERT INTO sluice.changes_2026_11_30 VALUES (20, '2026-11-30 07:10:32.173725+00', 766, 747, 3, 1, NULL, 1, 'users', '{"name": "User, 8", "plan": "free"}', false, false, 'u8', 'c0');
INSERT INTO sluice.changes_2026_11_30 VALUES (21, '2026-11-30 07:10:35.115406+00', 772, 747, 4, NULL, NULL, 1, 'companies', '{}', false, false, 'c0', NULL);
INSERT INTO sluice.changes_2026_11_30 VALUES (22, '2026-11-30 07:10:35.115406+00', 772, 747, 4, NULL, NULL, 1, 'companies', '{}', false, false, 'c1', NULL);
INSERT INTO sluice.changes_2026_11_30 VALUES (23, '2026-11-30 07:10:35.115406+00', 772, 747, 4, NULL, NULL, 1, 'companies', '{}', false, false, 'c2', NULL);
INSERT INTO sluice.changes_2026_11_30 VALUES (24, '2026-11-30 07:11:08.528478+00', 826, 766, NULL, NULL, NULL, 1, 'users', NULL, false, true, 'u40', NULL);


--
-- Data for Name: changes_2026_12_01; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: changes_2026_12_02; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: changes_2026_12_03; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: changes_2026_12_04; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: changes_2026_12_05; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: changes_2026_12_06; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: changes_2026_12_07; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: changes_default; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: companies; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.companies VALUES (1, 'c3', '{}', '2026-11-30 07:10:21.517491+00', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', NULL, NULL, NULL, NULL, 747);
INSERT INTO sluice.companies VALUES (1, 'c0', '{"size": "1"}', '2026-11-30 07:10:21.517491+00', '2026-11-30 07:10:35.115406+00', '2026-11-30 07:10:35.115406+00', 4, 0, 1, 'd7ad2260-3c8c-84cb-348d-ac50d6162273', 772);
INSERT INTO sluice.companies VALUES (1, 'c1', '{"size": "2"}', '2026-11-30 07:10:21.517491+00', '2026-11-30 07:10:35.115406+00', '2026-11-30 07:10:35.115406+00', 4, 0, 1, 'baec5d04-4e26-7ab5-259b-f6483b40ee11', 772);
INSERT INTO sluice.companies VALUES (1, 'c2', '{"size": "3"}', '2026-11-30 07:10:21.517491+00', '2026-11-30 07:10:35.115406+00', '2026-11-30 07:10:35.115406+00', 4, 0, 1, 'd70b6ca9-c1f3-5164-ee19-5373a95f77ef', 772);


--
-- Data for Name: console_links; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: console_sessions; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: deletion_ids; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.deletion_ids VALUES (1, 1, 'u40', 'deleted', 1, 0);


--
-- Data for Name: deletions; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.deletions OVERRIDING SYSTEM VALUE VALUES (1, '01a22b4b-000e-7000-ae39-2fa838de4e3c', 1, 5, 'users', 'completed', false, '{"suppress": true}', '1146011e-f314-472d-8729-3f09a8b3ed33', 'api_key', 'API_KEY', 1, 1, 0, 1, 0, 4, 0, '2026-11-30 07:11:05.295161+00', '2026-11-30 07:11:05.647559+00', '2026-11-30 07:11:10.710759+00', 1, NULL, NULL);


--
-- Data for Name: environment_uses; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.environment_uses VALUES (1, 'rules');
INSERT INTO sluice.environment_uses VALUES (1, 'suppression');


--
-- Data for Name: environments; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.environments OVERRIDING SYSTEM VALUE VALUES (1, 'default', 'NX-43Q23GU1', '2026-11-30 07:10:12.602913+00', 'ca349f51-1534-44ba-99e9-cd9c8209f20b', '{}', 'datasets');


--
-- Data for Name: event_ids; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.event_ids VALUES (1, 'e1', 'u2', '2026-02-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e2', 'u3', '2026-03-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e3', 'u4', '2026-01-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e4', 'u5', '2026-02-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e5', 'u6', '2026-03-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e6', 'u7', '2026-01-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e7', 'u8', '2026-02-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e8', 'u9', '2026-03-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e9', 'u10', '2026-01-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e10', 'u11', '2026-02-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e11', 'u12', '2026-03-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e12', 'u13', '2026-01-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e13', 'u14', '2026-02-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e14', 'u15', '2026-03-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e15', 'u16', '2026-01-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e16', 'u17', '2026-02-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e17', 'u18', '2026-03-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e18', 'u19', '2026-01-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e19', 'u20', '2026-02-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e20', 'u21', '2026-03-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e21', 'u22', '2026-01-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e22', 'u23', '2026-02-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e23', 'u24', '2026-03-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e24', 'u25', '2026-01-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e25', 'u26', '2026-02-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e26', 'u27', '2026-03-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e27', 'u28', '2026-01-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e28', 'u29', '2026-02-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e29', 'u30', '2026-03-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e30', 'u31', '2026-01-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e31', 'u32', '2026-02-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e32', 'u33', '2026-03-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e33', 'u34', '2026-01-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e34', 'u35', '2026-02-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e35', 'u36', '2026-03-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e36', 'u37', '2026-01-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e37', 'u38', '2026-02-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e38', 'u39', '2026-03-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e40', 'u1', '2026-02-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e41', 'u2', '2026-03-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e42', 'u3', '2026-01-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e43', 'u4', '2026-02-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e44', 'u5', '2026-03-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e45', 'u6', '2026-01-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e46', 'u7', '2026-02-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e47', 'u8', '2026-03-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e48', 'u9', '2026-01-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e49', 'u10', '2026-02-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e50', 'u11', '2026-03-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e51', 'u12', '2026-01-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e52', 'u13', '2026-02-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e53', 'u14', '2026-03-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e54', 'u15', '2026-01-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e55', 'u16', '2026-02-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e56', 'u17', '2026-03-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e57', 'u18', '2026-01-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e58', 'u19', '2026-02-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e59', 'u20', '2026-03-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 'e60', 'u21', '2026-01-15 10:00:00+00');
INSERT INTO sluice.event_ids VALUES (1, 's1', 'single', '2026-03-01 00:00:00+00');


--
-- Data for Name: event_prunings; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.event_prunings VALUES ('prune', '2026-11-30 07:11:03.669966+00', NULL, NULL);


--
-- Data for Name: event_removals; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.event_removals VALUES (1, 2);


--
-- Data for Name: event_retention; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: event_retirements; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: events_2026_01; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.events_2026_01 VALUES ('2026-01-15 10:00:00+00', 1, 'e3', 'track', 'paid', 'u4', NULL, 'import', '{"n": 3, "amount": 0.375}', 759);
INSERT INTO sluice.events_2026_01 VALUES ('2026-01-15 10:00:00+00', 1, 'e6', 'track', 'paid', 'u7', NULL, 'import', '{"n": 6, "amount": 0.75}', 759);
INSERT INTO sluice.events_2026_01 VALUES ('2026-01-15 10:00:00+00', 1, 'e9', 'track', 'paid', 'u10', NULL, 'import', '{"n": 9, "amount": 1.125}', 759);
INSERT INTO sluice.events_2026_01 VALUES ('2026-01-15 10:00:00+00', 1, 'e12', 'track', 'paid', 'u13', NULL, 'import', '{"n": 12, "amount": 1.5}', 759);
INSERT INTO sluice.events_2026_01 VALUES ('2026-01-15 10:00:00+00', 1, 'e15', 'track', 'paid', 'u16', NULL, 'import', '{"n": 15, "amount": 1.875}', 759);
INSERT INTO sluice.events_2026_01 VALUES ('2026-01-15 10:00:00+00', 1, 'e18', 'track', 'paid', 'u19', NULL, 'import', '{"n": 18, "amount": 2.25}', 759);
INSERT INTO sluice.events_2026_01 VALUES ('2026-01-15 10:00:00+00', 1, 'e21', 'track', 'paid', 'u22', NULL, 'import', '{"n": 21, "amount": 2.625}', 759);
INSERT INTO sluice.events_2026_01 VALUES ('2026-01-15 10:00:00+00', 1, 'e24', 'track', 'paid', 'u25', NULL, 'import', '{"n": 24, "amount": 3}', 759);
INSERT INTO sluice.events_2026_01 VALUES ('2026-01-15 10:00:00+00', 1, 'e27', 'track', 'paid', 'u28', NULL, 'import', '{"n": 27, "amount": 3.375}', 759);
INSERT INTO sluice.events_2026_01 VALUES ('2026-01-15 10:00:00+00', 1, 'e30', 'track', 'paid', 'u31', NULL, 'import', '{"n": 30, "amount": 3.75}', 759);
INSERT INTO sluice.events_2026_01 VALUES ('2026-01-15 10:00:00+00', 1, 'e33', 'track', 'paid', 'u34', NULL, 'import', '{"n": 33, "amount": 4.125}', 759);
INSERT INTO sluice.events_2026_01 VALUES ('2026-01-15 10:00:00+00', 1, 'e36', 'track', 'paid', 'u37', NULL, 'import', '{"n": 36, "amount": 4.5}', 759);
INSERT INTO sluice.events_2026_01 VALUES ('2026-01-15 10:00:00+00', 1, 'e42', 'track', 'paid', 'u3', NULL, 'import', '{"n": 42, "amount": 5.25}', 759);
INSERT INTO sluice.events_2026_01 VALUES ('2026-01-15 10:00:00+00', 1, 'e45', 'track', 'paid', 'u6', NULL, 'import', '{"n": 45, "amount": 5.625}', 759);
INSERT INTO sluice.events_2026_01 VALUES ('2026-01-15 10:00:00+00', 1, 'e48', 'track', 'paid', 'u9', NULL, 'import', '{"n": 48, "amount": 6}', 759);
INSERT INTO sluice.events_2026_01 VALUES ('2026-01-15 10:00:00+00', 1, 'e51', 'track', 'paid', 'u12', NULL, 'import', '{"n": 51, "amount": 6.375}', 759);
INSERT INTO sluice.events_2026_01 VALUES ('2026-01-15 10:00:00+00', 1, 'e54', 'track', 'paid', 'u15', NULL, 'import', '{"n": 54, "amount": 6.75}', 759);
INSERT INTO sluice.events_2026_01 VALUES ('2026-01-15 10:00:00+00', 1, 'e57', 'track', 'paid', 'u18', NULL, 'import', '{"n": 57, "amount": 7.125}', 759);
INSERT INTO sluice.events_2026_01 VALUES ('2026-01-15 10:00:00+00', 1, 'e60', 'track', 'paid', 'u21', NULL, 'import', '{"n": 60, "amount": 7.5}', 759);


--
-- Data for Name: events_2026_02; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.events_2026_02 VALUES ('2026-02-15 10:00:00+00', 1, 'e1', 'track', 'opened', 'u2', NULL, 'import', '{"n": 1, "amount": 0.125}', 759);
INSERT INTO sluice.events_2026_02 VALUES ('2026-02-15 10:00:00+00', 1, 'e4', 'track', 'opened', 'u5', NULL, 'import', '{"n": 4, "amount": 0.5}', 759);
INSERT INTO sluice.events_2026_02 VALUES ('2026-02-15 10:00:00+00', 1, 'e7', 'track', 'opened', 'u8', NULL, 'import', '{"n": 7, "amount": 0.875}', 759);
INSERT INTO sluice.events_2026_02 VALUES ('2026-02-15 10:00:00+00', 1, 'e10', 'track', 'opened', 'u11', NULL, 'import', '{"n": 10, "amount": 1.25}', 759);
INSERT INTO sluice.events_2026_02 VALUES ('2026-02-15 10:00:00+00', 1, 'e13', 'track', 'opened', 'u14', NULL, 'import', '{"n": 13, "amount": 1.625}', 759);
INSERT INTO sluice.events_2026_02 VALUES ('2026-02-15 10:00:00+00', 1, 'e16', 'track', 'opened', 'u17', NULL, 'import', '{"n": 16, "amount": 2}', 759);
INSERT INTO sluice.events_2026_02 VALUES ('2026-02-15 10:00:00+00', 1, 'e19', 'track', 'opened', 'u20', NULL, 'import', '{"n": 19, "amount": 2.375}', 759);
INSERT INTO sluice.events_2026_02 VALUES ('2026-02-15 10:00:00+00', 1, 'e22', 'track', 'opened', 'u23', NULL, 'import', '{"n": 22, "amount": 2.75}', 759);
INSERT INTO sluice.events_2026_02 VALUES ('2026-02-15 10:00:00+00', 1, 'e25', 'track', 'opened', 'u26', NULL, 'import', '{"n": 25, "amount": 3.125}', 759);
INSERT INTO sluice.events_2026_02 VALUES ('2026-02-15 10:00:00+00', 1, 'e28', 'track', 'opened', 'u29', NULL, 'import', '{"n": 28, "amount": 3.5}', 759);
INSERT INTO sluice.events_2026_02 VALUES ('2026-02-15 10:00:00+00', 1, 'e31', 'track', 'opened', 'u32', NULL, 'import', '{"n": 31, "amount": 3.875}', 759);
INSERT INTO sluice.events_2026_02 VALUES ('2026-02-15 10:00:00+00', 1, 'e34', 'track', 'opened', 'u35', NULL, 'import', '{"n": 34, "amount": 4.25}', 759);
INSERT INTO sluice.events_2026_02 VALUES ('2026-02-15 10:00:00+00', 1, 'e37', 'track', 'opened', 'u38', NULL, 'import', '{"n": 37, "amount": 4.625}', 759);
INSERT INTO sluice.events_2026_02 VALUES ('2026-02-15 10:00:00+00', 1, 'e40', 'track', 'opened', 'u1', NULL, 'import', '{"n": 40, "amount": 5}', 759);
INSERT INTO sluice.events_2026_02 VALUES ('2026-02-15 10:00:00+00', 1, 'e43', 'track', 'opened', 'u4', NULL, 'import', '{"n": 43, "amount": 5.375}', 759);
INSERT INTO sluice.events_2026_02 VALUES ('2026-02-15 10:00:00+00', 1, 'e46', 'track', 'opened', 'u7', NULL, 'import', '{"n": 46, "amount": 5.75}', 759);
INSERT INTO sluice.events_2026_02 VALUES ('2026-02-15 10:00:00+00', 1, 'e49', 'track', 'opened', 'u10', NULL, 'import', '{"n": 49, "amount": 6.125}', 759);
INSERT INTO sluice.events_2026_02 VALUES ('2026-02-15 10:00:00+00', 1, 'e52', 'track', 'opened', 'u13', NULL, 'import', '{"n": 52, "amount": 6.5}', 759);
INSERT INTO sluice.events_2026_02 VALUES ('2026-02-15 10:00:00+00', 1, 'e55', 'track', 'opened', 'u16', NULL, 'import', '{"n": 55, "amount": 6.875}', 759);
INSERT INTO sluice.events_2026_02 VALUES ('2026-02-15 10:00:00+00', 1, 'e58', 'track', 'opened', 'u19', NULL, 'import', '{"n": 58, "amount": 7.25}', 759);


--
-- Data for Name: events_2026_03; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.events_2026_03 VALUES ('2026-03-15 10:00:00+00', 1, 'e2', 'track', 'opened', 'u3', NULL, 'import', '{"n": 2, "amount": 0.25}', 759);
INSERT INTO sluice.events_2026_03 VALUES ('2026-03-15 10:00:00+00', 1, 'e5', 'track', 'opened', 'u6', NULL, 'import', '{"n": 5, "amount": 0.625}', 759);
INSERT INTO sluice.events_2026_03 VALUES ('2026-03-15 10:00:00+00', 1, 'e8', 'track', 'opened', 'u9', NULL, 'import', '{"n": 8, "amount": 1}', 759);
INSERT INTO sluice.events_2026_03 VALUES ('2026-03-15 10:00:00+00', 1, 'e11', 'track', 'opened', 'u12', NULL, 'import', '{"n": 11, "amount": 1.375}', 759);
INSERT INTO sluice.events_2026_03 VALUES ('2026-03-15 10:00:00+00', 1, 'e14', 'track', 'opened', 'u15', NULL, 'import', '{"n": 14, "amount": 1.75}', 759);
INSERT INTO sluice.events_2026_03 VALUES ('2026-03-15 10:00:00+00', 1, 'e17', 'track', 'opened', 'u18', NULL, 'import', '{"n": 17, "amount": 2.125}', 759);
INSERT INTO sluice.events_2026_03 VALUES ('2026-03-15 10:00:00+00', 1, 'e20', 'track', 'opened', 'u21', NULL, 'import', '{"n": 20, "amount": 2.5}', 759);
INSERT INTO sluice.events_2026_03 VALUES ('2026-03-15 10:00:00+00', 1, 'e23', 'track', 'opened', 'u24', NULL, 'import', '{"n": 23, "amount": 2.875}', 759);
INSERT INTO sluice.events_2026_03 VALUES ('2026-03-15 10:00:00+00', 1, 'e26', 'track', 'opened', 'u27', NULL, 'import', '{"n": 26, "amount": 3.25}', 759);
INSERT INTO sluice.events_2026_03 VALUES ('2026-03-15 10:00:00+00', 1, 'e29', 'track', 'opened', 'u30', NULL, 'import', '{"n": 29, "amount": 3.625}', 759);
INSERT INTO sluice.events_2026_03 VALUES ('2026-03-15 10:00:00+00', 1, 'e32', 'track', 'opened', 'u33', NULL, 'import', '{"n": 32, "amount": 4}', 759);
INSERT INTO sluice.events_2026_03 VALUES ('2026-03-15 10:00:00+00', 1, 'e35', 'track', 'opened', 'u36', NULL, 'import', '{"n": 35, "amount": 4.375}', 759);
INSERT INTO sluice.events_2026_03 VALUES ('2026-03-15 10:00:00+00', 1, 'e38', 'track', 'opened', 'u39', NULL, 'import', '{"n": 38, "amount": 4.75}', 759);
INSERT INTO sluice.events_2026_03 VALUES ('2026-03-15 10:00:00+00', 1, 'e41', 'track', 'opened', 'u2', NULL, 'import', '{"n": 41, "amount": 5.125}', 759);
INSERT INTO sluice.events_2026_03 VALUES ('2026-03-15 10:00:00+00', 1, 'e44', 'track', 'opened', 'u5', NULL, 'import', '{"n": 44, "amount": 5.5}', 759);
INSERT INTO sluice.events_2026_03 VALUES ('2026-03-15 10:00:00+00', 1, 'e47', 'track', 'opened', 'u8', NULL, 'import', '{"n": 47, "amount": 5.875}', 759);
INSERT INTO sluice.events_2026_03 VALUES ('2026-03-15 10:00:00+00', 1, 'e50', 'track', 'opened', 'u11', NULL, 'import', '{"n": 50, "amount": 6.25}', 759);
INSERT INTO sluice.events_2026_03 VALUES ('2026-03-15 10:00:00+00', 1, 'e53', 'track', 'opened', 'u14', NULL, 'import', '{"n": 53, "amount": 6.625}', 759);
INSERT INTO sluice.events_2026_03 VALUES ('2026-03-15 10:00:00+00', 1, 'e56', 'track', 'opened', 'u17', NULL, 'import', '{"n": 56, "amount": 7}', 759);
INSERT INTO sluice.events_2026_03 VALUES ('2026-03-15 10:00:00+00', 1, 'e59', 'track', 'opened', 'u20', NULL, 'import', '{"n": 59, "amount": 7.375}', 759);
INSERT INTO sluice.events_2026_03 VALUES ('2026-03-01 00:00:00+00', 1, 's1', 'track', 'paid', 'single', NULL, 'backend-http', '{}', 814);


--
-- Data for Name: events_2026_11; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: events_2026_12; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: export_files; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.export_files VALUES (1, 'users.ndjson', 'users', 'exports/01a22b4b-3bb2-7000-8606-36a1ab0ffab2/1/01a22b4b-3e38-7000-a195-5c671a1a1c6b', 40, 6945, '\x6a8aafb75ca061c9930aa9a2ea12fa810e207df19635915695564e94357dbb19');
INSERT INTO sluice.export_files VALUES (1, 'companies.ndjson', 'companies', 'exports/01a22b4b-3bb2-7000-8606-36a1ab0ffab2/1/01a22b4b-3e80-7000-9be4-091192eaeefa', 4, 533, '\x31467b6f44ca31981fb7c6fc41e5a6c4a975de4055378093090048c043a6a15a');
INSERT INTO sluice.export_files VALUES (1, 'events.ndjson', 'events', 'exports/01a22b4b-3bb2-7000-8606-36a1ab0ffab2/1/01a22b4b-3fa4-7000-976f-1d21858c1ccf', 60, 10530, '\x644d75ec76304fca4cfa53792ab0a360249a8a2570c24c01bed5cb9a8a97290e');
INSERT INTO sluice.export_files VALUES (1, 'manifest.json', 'manifest', 'exports/01a22b4b-3bb2-7000-8606-36a1ab0ffab2/1/01a22b4b-409e-7000-b310-aac3c7ad7f7d', 0, 1389, '\x9c469cfa238a22a125cc945dd53cd112b939d59731fc9c2a71c1172235d872fe');


--
-- Data for Name: exports; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.exports OVERRIDING SYSTEM VALUE VALUES (1, '01a22b4b-3bb2-7000-8606-36a1ab0ffab2', 1, 'completed', '{"to": null, "from": null, "since": null, "format": "ndjson", "layout": "datasets", "userIds": [], "datasets": ["users", "companies", "events"], "segmentId": null, "companyIds": [], "eventKinds": [], "eventNames": [], "exclusions": [], "compression": "none", "waitForLoads": false, "escapeFormulas": true, "includeRemoved": true}', 'ndjson', 'none', '{}', '[{"details": "job_ids: 01a22b4b-2ce5-7000-bc75-91223254dc4d", "message": "1 load had been accepted and had not ended, so that the files may hold part of what it changes; wait_for_loads=true waits"}]', NULL, '96c27c8e-7f72-40c0-b7a9-5085f5f1d2b5', 'api_key', 'API_KEY', '2026-11-30 07:11:20.498432+00', '2026-11-30 07:11:21.005437+00', '2026-11-30 07:11:21.863097+00', 1, NULL, 104, 19397, '2026-11-30 07:11:21.036+00', '870:870:', NULL, NULL, NULL);


--
-- Data for Name: idempotency_keys; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: inbox_files; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: keyed_items; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: lake_columns; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: lake_files; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: lake_months; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: lake_tables; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: load_chunk_keys; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.load_chunk_keys VALUES (5, 0, 'users', '{-7712415981798569752,-4098408609948481328,2624367553106030736,-466776744494298456,4366948231983080508}', '{}', '{}');


--
-- Data for Name: load_chunks; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.load_chunks VALUES (1, 0, 29, 955, 1, 2, 42, false, 40, 0, 0, 0, 0, 2, '2026-11-30 07:10:26.200271+00', 'vm 29892', 1, 0, '{747}');
INSERT INTO sluice.load_chunks VALUES (2, 0, 0, 8865, 1, 1, 60, false, 60, 0, 0, 0, 0, 0, '2026-11-30 07:10:30.068044+00', 'vm 29892', 1, 0, '{759}');
INSERT INTO sluice.load_chunks VALUES (3, 0, 29, 910, 1, 2, 40, false, 0, 20, 20, 0, 0, 0, '2026-11-30 07:10:32.570302+00', 'vm 29892', 1, 0, '{766}');
INSERT INTO sluice.load_chunks VALUES (4, 0, 16, 31, 1, 2, 3, false, 0, 3, 0, 0, 0, 0, '2026-11-30 07:10:35.482387+00', 'vm 29892', 1, 0, '{772}');
INSERT INTO sluice.load_chunks VALUES (5, 0, 29, 148, 1, 2, 5, false, 0, 5, 0, 0, 0, 0, '2026-11-30 07:11:13.0623+00', 'vm 29892', 1, 0, '{840}');
INSERT INTO sluice.load_chunks VALUES (6, 0, 29, 91, 1, 2, 3, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, '{}');


--
-- Data for Name: load_event_replays; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: load_findings; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: load_guards; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.load_guards VALUES (6, NULL, NULL, NULL, '{"rows": "100.."}', '2026-11-30 07:11:19.46988+00', '[{"figure": "rows", "message": "3 rows; expected: at least 100"}]', NULL, NULL);


--
-- Data for Name: load_kinds; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.load_kinds VALUES (2, 'track', 60, 0, 0, 0, 0, 0);


--
-- Data for Name: load_lineage; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: load_mends; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: load_mirrors; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.load_mirrors VALUES (4, 4, 1, 0, 0, 'too_many');


--
-- Data for Name: load_missing; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: load_plans; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.load_plans VALUES (5, '2026-11-30 07:11:11.967494+00', '838:838:', '{"counts": {"read": 5, "removed": 0, "updated": 5, "inserted": 0, "rejected": 0, "unchanged": 0, "superseded": 0}, "events": {"days": [], "names": [], "moreNames": 0, "earlierDays": 0}, "values": {"go": 0, "appear": 0, "change": 5, "retype": 0}, "profiles": {"users": {"new": 0, "changed": 5, "removed": 0}, "companies": {"new": 0, "changed": 0, "removed": 0}}, "properties": [{"go": 0, "name": "plan", "isNew": false, "appear": 0, "change": 5, "entity": "users", "retype": 0}], "countsByKind": null, "morePropertyNames": 0}', '2026-11-30 07:11:14.127362+00', NULL, NULL);


--
-- Data for Name: load_rejects; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.load_rejects VALUES (1, 41, 42, 931, 'user_id', 'missing_id', 'user_id is empty', '\x2c4e6f626f64792c667265652c', NULL, 3044390638869530, 'empty');
INSERT INTO sluice.load_rejects VALUES (1, 42, 43, 945, NULL, 'wrong_field_count', 'the header has 4 columns, this record 2; ragged=pad fills short records up', '\x7539392c73686f7274', NULL, 3959528700144947, '2 cells where 4 are named');


--
-- Data for Name: load_replays; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: load_rules; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.load_rules VALUES (1, 1, 1);
INSERT INTO sluice.load_rules VALUES (2, 1, 1);
INSERT INTO sluice.load_rules VALUES (3, 1, 1);
INSERT INTO sluice.load_rules VALUES (4, 1, 1);
INSERT INTO sluice.load_rules VALUES (5, 1, 1);
INSERT INTO sluice.load_rules VALUES (6, 1, 1);


--
-- Data for Name: load_undos; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: loads; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.loads OVERRIDING SYSTEM VALUE VALUES (1, '01a22b4a-553c-7000-8ebd-a922707bdc4e', 1, 1, 'import', 'users', 'completed', 'users.csv', 955, '\xd9f30a7a765fc21f8a70382aa18b53d27f1458c49b1b9fac0d44b8ac421a7650', NULL, '{"columns": ["user_id", "name", "plan", "company_id"], "delimiter": ","}', '{}', NULL, '{}', '{"csv": {"nulls": [], "quote": "\"", "escape": "\"", "ragged": "refuse", "columns": ["user_id", "name", "plan", "company_id"], "comment": "", "delimiter": ",", "headerLine": 1, "columnCount": 4}, "notes": [], "sheet": null, "format": "csv", "member": null, "sheets": null, "encoding": "utf-8"}', 42, 'load', DEFAULT, false, 'cfeeae0e-73d6-4499-a4fe-4116217d528d', 'api_key', 'API_KEY', '2026-11-30 07:10:21.517491+00', '742:742:', '2026-11-30 07:10:22.586512+00', '2026-11-30 07:10:22.586512+00', '2026-11-30 07:10:25.185393+00', NULL, NULL, 1, 1, 1, 42, 40, 0, 0, 0, 0, 2, 0, false, NULL, 0, false);
INSERT INTO sluice.loads OVERRIDING SYSTEM VALUE VALUES (2, '01a22b4a-6f27-7000-a932-26fa731f7963', 1, 2, 'import', 'auto', 'completed', 'events.ndjson', 8865, '\xda82938220b349fd702c7002fedd5d4bf74c915ee67b24e9245597b13d404f5f', NULL, NULL, '{}', NULL, '{}', '{"csv": null, "notes": [], "sheet": null, "format": "ndjson", "member": null, "sheets": null, "encoding": "utf-8"}', 60, 'load', DEFAULT, false, '4de25d33-5b36-4078-94c0-5a18b18c9fa7', 'api_key', 'API_KEY', '2026-11-30 07:10:28.162896+00', '749:749:', '2026-11-30 07:10:28.395202+00', '2026-11-30 07:10:28.395202+00', '2026-11-30 07:10:29.875061+00', NULL, NULL, 1, 1, 1, 60, 60, 0, 0, 0, 0, 0, 0, false, NULL, 0, true);
INSERT INTO sluice.loads OVERRIDING SYSTEM VALUE VALUES (3, '01a22b4a-7ae6-7000-b6f6-9776c92931dc', 1, 3, 'import', 'users', 'completed', 'changed.csv', 910, '\xae4017cf6944c9961db7dbc4098d0df82ca028120e0ecfa9ac45e53000460b97', NULL, '{"columns": ["user_id", "name", "plan", "company_id"], "delimiter": ","}', '{}', NULL, '{}', '{"csv": {"nulls": [], "quote": "\"", "escape": "\"", "ragged": "refuse", "columns": ["user_id", "name", "plan", "company_id"], "comment": "", "delimiter": ",", "headerLine": 1, "columnCount": 4}, "notes": [], "sheet": null, "format": "csv", "member": null, "sheets": null, "encoding": "utf-8"}', 40, 'load', DEFAULT, false, '265e79a5-df20-4f00-8b51-9dae92f93055', 'api_key', 'API_KEY', '2026-11-30 07:10:31.144744+00', '762:762:', '2026-11-30 07:10:31.537061+00', '2026-11-30 07:10:31.537061+00', '2026-11-30 07:10:32.173725+00', NULL, NULL, 1, 1, 1, 40, 0, 20, 20, 0, 0, 0, 0, false, NULL, 0, false);
INSERT INTO sluice.loads OVERRIDING SYSTEM VALUE VALUES (4, '01a22b4a-84e2-7000-98cf-fdbab2456e28', 1, 4, 'import', 'companies', 'completed', 'companies.csv', 31, '\x18ab51f7162d659f15ab3ceffa3033c0b6639d9a64e1cda7c726287d11ec2b46', NULL, '{"columns": ["company_id", "size"], "delimiter": ","}', '{}', NULL, '{"mirror": "remove"}', '{"csv": {"nulls": [], "quote": "\"", "escape": "\"", "ragged": "refuse", "columns": ["company_id", "size"], "comment": "", "delimiter": ",", "headerLine": 1, "columnCount": 2}, "notes": [], "sheet": null, "format": "csv", "member": null, "sheets": null, "encoding": "utf-8"}', 3, 'load', DEFAULT, false, 'c3a43b0c-f91a-412f-bd22-82d84ff20517', 'api_key', 'API_KEY', '2026-11-30 07:10:33.749875+00', '768:768:', '2026-11-30 07:10:34.00262+00', '2026-11-30 07:10:34.00262+00', '2026-11-30 07:10:59.690824+00', NULL, NULL, 1, 1, 1, 3, 0, 3, 0, 0, 0, 0, 0, false, NULL, 0, false);
INSERT INTO sluice.loads OVERRIDING SYSTEM VALUE VALUES (5, '01a22b4b-195f-7000-a75e-cff27a361b7f', 1, 6, 'import', 'users', 'completed', 'plan.csv', 148, '\xd8ebcddd67fbee7b8d330cc2a2722812dd84ecb03b5c3569d0d7e570f63b2739', '2026-11-30/01a22b4b-17f3-7000-9e4f-6357e5d49796', '{"columns": ["user_id", "name", "plan", "company_id"], "delimiter": ","}', '{}', NULL, '{}', '{"csv": {"nulls": [], "quote": "\"", "escape": "\"", "ragged": "refuse", "columns": ["user_id", "name", "plan", "company_id"], "comment": "", "delimiter": ",", "headerLine": 1, "columnCount": 4}, "notes": [], "sheet": null, "format": "csv", "member": null, "sheets": null, "encoding": "utf-8"}', 5, 'plan', DEFAULT, false, 'a86d7e60-cdcb-4e02-a935-0386cd5e7e50', 'api_key', 'API_KEY', '2026-11-30 07:11:11.782047+00', '836:836:', '2026-11-30 07:11:11.967494+00', '2026-11-30 07:11:11.967494+00', '2026-11-30 07:11:15.297302+00', NULL, NULL, 1, 1, 1, 5, 0, 5, 0, 0, 0, 0, 0, false, NULL, 2, false);
INSERT INTO sluice.loads OVERRIDING SYSTEM VALUE VALUES (6, '01a22b4b-2ce5-7000-bc75-91223254dc4d', 1, 7, 'import', 'users', 'held', 'held.csv', 91, '\x01e6e956293b6a82b95bed5a2308aa16491aa17f5da67a16790544d31822214d', '2026-11-30/01a22b4b-2c13-7000-82c1-4803b2e2f802', '{"columns": ["user_id", "name", "plan", "company_id"], "delimiter": ","}', '{}', NULL, '{}', '{"csv": {"nulls": [], "quote": "\"", "escape": "\"", "ragged": "refuse", "columns": ["user_id", "name", "plan", "company_id"], "comment": "", "delimiter": ",", "headerLine": 1, "columnCount": 4}, "notes": [], "sheet": null, "format": "csv", "member": null, "sheets": null, "encoding": "utf-8"}', 3, 'validate', DEFAULT, false, '3cf95448-7bac-4b38-b8d5-b1928ab7cc4b', 'api_key', 'API_KEY', '2026-11-30 07:11:16.729404+00', '851:851:', '2026-11-30 07:11:17.667133+00', '2026-11-30 07:11:17.667133+00', NULL, NULL, NULL, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, false, NULL, 2, false);


--
-- Data for Name: migrations; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.migrations VALUES ('0001_create_environments.sql', '7b24eaffea639d1ce510f98d3c17351f140f51199734177e40e2b207672c4a51', '2026-11-30 07:10:08.671015+00');
INSERT INTO sluice.migrations VALUES ('0002_create_profiles.sql', 'da4c20e348d43cbff73f08191960734419b44039cc4c6f3dda758a464e7a0acf', '2026-11-30 07:10:08.671015+00');
INSERT INTO sluice.migrations VALUES ('0003_create_loads.sql', '45955c8253746e589dc8d8ce512d08bfed6908cda1ef47c1f0e7e9a8aa2ebbbd', '2026-11-30 07:10:08.671015+00');
INSERT INTO sluice.migrations VALUES ('0004_create_events.sql', '7eae8df7647c09a13d80b01a80b200668553746351f6ef8ad78317ed58452648', '2026-11-30 07:10:08.671015+00');
INSERT INTO sluice.migrations VALUES ('0005_create_properties.sql', '70165ddb066ce9e558028e1410d0c6e1b8f2b41b2c4714d873c9a22324176e6b', '2026-11-30 07:10:08.671015+00');
INSERT INTO sluice.migrations VALUES ('0006_create_definitions.sql', 'b0010efb3abef3301f5c319b269ec8304e3be6efd37522ac85cf2e88e10e817a', '2026-11-30 07:10:08.671015+00');
INSERT INTO sluice.migrations VALUES ('0007_create_exports.sql', '487c5310b51c3248cee441a02568386ce610c724f37908a365e86bf01fc1e269', '2026-11-30 07:10:08.671015+00');
INSERT INTO sluice.migrations VALUES ('0008_create_deletions.sql', '3bb6b4fca58f84afed1bd4dbdfbee1988ff3aec8679f843677a254dc6e192e7d', '2026-11-30 07:10:08.671015+00');
INSERT INTO sluice.migrations VALUES ('0009_create_background_jobs.sql', '6f2a002aa3d036f889a97369c0b464d28f6109709cf70d12248aa3b6dd0e4f2d', '2026-11-30 07:10:08.671015+00');
INSERT INTO sluice.migrations VALUES ('0010_create_event_retention.sql', 'a7c7da18218fa1b433e6eff15464310cca8dbbe5446c14df3ed464d4cef7f925', '2026-11-30 07:10:08.671015+00');
INSERT INTO sluice.migrations VALUES ('0011_create_tasks.sql', 'e837c88a14b6abd2f0ccda09b11331fea3a3c409f46c007f47c7ea2d7b8f6c6d', '2026-11-30 07:10:08.671015+00');
INSERT INTO sluice.migrations VALUES ('0012_create_uploads.sql', '860b79cc9d39d3c0386b374aa4db4c89a5fbabae83a76c3d8021755b7e8c1e53', '2026-11-30 07:10:08.671015+00');
INSERT INTO sluice.migrations VALUES ('0013_create_console_sessions.sql', '1500e4ef21e351c6c86e39fbf21ff2d231bf659928f9209ffdf029890b697c6e', '2026-11-30 07:10:08.671015+00');
INSERT INTO sluice.migrations VALUES ('0014_create_changes.sql', '1f9b4be5cbe564f669d0f6783561b2fe6656dd19ecafca6eeb3c56564746456f', '2026-11-30 07:10:08.671015+00');
INSERT INTO sluice.migrations VALUES ('inbox/0001_create_inbox.sql', 'a775c86cc4dfd38003fd12ece78ca09431b854a37f66d59911fa58f5f085abde', '2026-11-30 07:10:08.671015+00');
INSERT INTO sluice.migrations VALUES ('lake/0001_create_lake.sql', '756747671e2345b1c7c288044b949d04deb5d8e55f2f8ae6e45863eab8555d86', '2026-11-30 07:10:08.671015+00');
INSERT INTO sluice.migrations VALUES ('mirror/0001_create_mirrors.sql', '37b889a22077c68baedb912075e80b6b798e285062622d49e346aea7657687a5', '2026-11-30 07:10:08.671015+00');
INSERT INTO sluice.migrations VALUES ('notifications/0001_create_notifications.sql', 'aef30d4ff82d5ab985e9bcc5f19e6e308812f4a26d3384f770165a15adae8f6a', '2026-11-30 07:10:08.671015+00');
INSERT INTO sluice.migrations VALUES ('personal/0001_create_personal_loads.sql', '5c24088f7edc83d1317fdd6b3507f711d7ec062991511d0b73b69e5659b862b6', '2026-11-30 07:10:08.671015+00');
INSERT INTO sluice.migrations VALUES ('rules/0001_create_rules.sql', '00102bf36fc7986088d86b7403c0366c5810810b355390387adf2d481de0b1fc', '2026-11-30 07:10:08.671015+00');
INSERT INTO sluice.migrations VALUES ('schedules/0001_create_schedules.sql', 'b5d57ad9a654bcf61be919d917a057e2243a06da797827d098d8db0ed6117e59', '2026-11-30 07:10:08.671015+00');
INSERT INTO sluice.migrations VALUES ('suppression/0001_create_suppressions.sql', 'fb3a91dbd1b1f46231039bdd2d2b87cb2e37c3ef73b0738b89a656845cb1d51d', '2026-11-30 07:10:08.671015+00');
INSERT INTO sluice.migrations VALUES ('undo/0001_create_undos.sql', 'e6a6825ae7c3282b954558951918a231107f0444d083ffeb54c48b72b3f3ccae', '2026-11-30 07:10:08.671015+00');


--
-- Data for Name: notification_attempts; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: notification_deliveries; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: notification_events; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: notification_subscriptions; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: personal_loads; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: planned_chunks; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: planned_events; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: planned_rows; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.planned_rows VALUES (5, 0, false, false, 'users', 'u1', '{"name": "User, 1", "plan": "free"}', 'c1', '{"name": "User, 1", "plan": "planned"}', 'c1');
INSERT INTO sluice.planned_rows VALUES (5, 0, false, false, 'users', 'u2', '{"name": "User, 2", "plan": "pro"}', 'c2', '{"name": "User, 2", "plan": "planned"}', 'c2');
INSERT INTO sluice.planned_rows VALUES (5, 0, false, false, 'users', 'u3', '{"name": "User, 3", "plan": "free"}', 'c3', '{"name": "User, 3", "plan": "planned"}', 'c3');
INSERT INTO sluice.planned_rows VALUES (5, 0, false, false, 'users', 'u4', '{"name": "User, 4", "plan": "pro"}', 'c0', '{"name": "User, 4", "plan": "planned"}', 'c0');
INSERT INTO sluice.planned_rows VALUES (5, 0, false, false, 'users', 'u5', '{"name": "User, 5", "plan": "free"}', 'c1', '{"name": "User, 5", "plan": "planned"}', 'c1');


--
-- Data for Name: properties; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.properties OVERRIDING SYSTEM VALUE VALUES (1, 1, 'users', 'first_seen_at', 'First Seen At', 'date', true, '2026-11-30 07:10:12.602913+00');
INSERT INTO sluice.properties OVERRIDING SYSTEM VALUE VALUES (2, 1, 'users', 'last_seen_at', 'Last Seen At', 'date', true, '2026-11-30 07:10:12.602913+00');
INSERT INTO sluice.properties OVERRIDING SYSTEM VALUE VALUES (3, 1, 'companies', 'first_seen_at', 'First Seen At', 'date', true, '2026-11-30 07:10:12.602913+00');
INSERT INTO sluice.properties OVERRIDING SYSTEM VALUE VALUES (4, 1, 'companies', 'last_seen_at', 'Last Seen At', 'date', true, '2026-11-30 07:10:12.602913+00');
INSERT INTO sluice.properties OVERRIDING SYSTEM VALUE VALUES (5, 1, 'users', 'name', 'Name', 'string', false, '2026-11-30 07:10:25.139937+00');
INSERT INTO sluice.properties OVERRIDING SYSTEM VALUE VALUES (6, 1, 'users', 'plan', 'Plan', 'string', false, '2026-11-30 07:10:25.139937+00');
INSERT INTO sluice.properties OVERRIDING SYSTEM VALUE VALUES (7, 1, 'events', 'amount', 'Amount', 'numeric', false, '2026-11-30 07:10:29.301608+00');
INSERT INTO sluice.properties OVERRIDING SYSTEM VALUE VALUES (8, 1, 'events', 'n', 'N', 'numeric', false, '2026-11-30 07:10:29.301608+00');
INSERT INTO sluice.properties OVERRIDING SYSTEM VALUE VALUES (9, 1, 'event_names', 'opened', 'Opened', 'string', false, '2026-11-30 07:10:29.416568+00');
INSERT INTO sluice.properties OVERRIDING SYSTEM VALUE VALUES (10, 1, 'event_names', 'paid', 'Paid', 'string', false, '2026-11-30 07:10:29.416568+00');
INSERT INTO sluice.properties OVERRIDING SYSTEM VALUE VALUES (11, 1, 'companies', 'size', 'Size', 'string', false, '2026-11-30 07:10:34.973383+00');


--
-- Data for Name: rates; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.rates VALUES (1, 1, '2026-11-30 07:10:00+00', 123, 20, 2);
INSERT INTO sluice.rates VALUES (1, 1, '2026-11-30 07:11:00+00', 2, 0, 0);
INSERT INTO sluice.rates VALUES (1, 24, '2026-11-30 06:48:00+00', 125, 20, 2);
INSERT INTO sluice.rates VALUES (1, 720, '2026-11-30 00:00:00+00', 125, 20, 2);


--
-- Data for Name: received_files; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: rules; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.rules VALUES (1, 1, '{"users": {"properties": {"plan": {"type": "text", "otherwise": "report"}}}}', '2026-11-30 07:10:16.797511+00', 'API_KEY');


--
-- Data for Name: schedule_memory; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: schedule_run_items; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: schedule_runs; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: schedules; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.schedules VALUES (1, 'nightly', '2026-11-30 07:11:20.373+00', NULL, NULL, '{"cron": "0 3 * * *", "name": "nightly", "export": {"range": "since_last_success"}, "missed": "run_once", "enabled": true, "overlap": "skip", "timezone": "UTC", "missed_within": "1d"}');


--
-- Data for Name: segments; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.segments OVERRIDING SYSTEM VALUE VALUES (1, 1, 'pros', 'Pros', 'analytics', 'custom', false, false, 'active', 'api', '{"property":"plan","equals":"pro"}', '2026-11-30 07:10:17.994638+00', '2026-11-30 07:10:17.994638+00');


--
-- Data for Name: signing_keys; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.signing_keys VALUES ('export-links', '\xb66eba28b8d4c8bb0145c6ecd2d68855b822be615accbc9ec05857757677f1f5', '2026-11-30 07:11:22.31577+00');


--
-- Data for Name: suppression_keys; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.suppression_keys VALUES (1, '\x356101c8b703af55b0fd0f018df80e7636a198ce6a629161f98385af2eea643e');


--
-- Data for Name: suppressions; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.suppressions VALUES (1, '\xe00955e306d075ddde31e9b3b84ae5ec6c5a43e0408f51fc89cfdf1bcbb8b0e4', '2026-11-30 07:11:08.008986+00');


--
-- Data for Name: survey_modules; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: surveys; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: tasks; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.tasks OVERRIDING SYSTEM VALUE VALUES (6, 'prune', 0, 0, 0, NULL, NULL, NULL, 1, NULL, '2026-11-30 07:10:59.37273+00', 'vm 29972', '2026-11-30 07:11:03.723629+00', '2026-12-01 07:11:03.723629+00', NULL, 0, 0, NULL);


--
-- Data for Name: titled_items; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: uploads; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Data for Name: users; Type: TABLE DATA; Schema: sluice; Owner: -
--

INSERT INTO sluice.users VALUES (1, 'u1', 'c1', '{"name": "User, 1", "plan": "free"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', 1, 0, 1, 'e1fea1e8-47b3-3dd4-a18b-5a369a1b9692', 747);
INSERT INTO sluice.users VALUES (1, 'u11', 'c3', '{"name": "User, 11", "plan": "free"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', 1, 0, 1, '998879a7-b0c6-050c-d6de-5b9ac7c33cd1', 747);
INSERT INTO sluice.users VALUES (1, 'u13', 'c1', '{"name": "User, 13", "plan": "free"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', 1, 0, 1, '011cbacd-c30a-c1e9-9030-90d645d4340b', 747);
INSERT INTO sluice.users VALUES (1, 'u15', 'c3', '{"name": "User, 15", "plan": "free"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', 1, 0, 1, 'f026963d-37ad-e434-66bc-224deaf2f4e0', 747);
INSERT INTO sluice.users VALUES (1, 'u17', 'c1', '{"name": "User, 17", "plan": "free"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', 1, 0, 1, '86b24095-6743-2b91-c6a1-ba5adbc4951f', 747);
INSERT INTO sluice.users VALUES (1, 'u19', 'c3', '{"name": "User, 19", "plan": "free"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', 1, 0, 1, '787f55d3-fc05-caf2-7118-9d88df7ffb5e', 747);
INSERT INTO sluice.users VALUES (1, 'u21', 'c1', '{"name": "User, 21", "plan": "free"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', 1, 0, 1, '9b383318-2586-c019-5814-b6f4bd8d78b5', 747);
INSERT INTO sluice.users VALUES (1, 'u23', 'c3', '{"name": "User, 23", "plan": "free"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', 1, 0, 1, 'f7b105f7-cb4d-a901-cbea-33fa0bb758ac', 747);
INSERT INTO sluice.users VALUES (1, 'u25', 'c1', '{"name": "User, 25", "plan": "free"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', 1, 0, 1, 'f86e5c76-95fb-2754-23b7-00eabea8c9e2', 747);
INSERT INTO sluice.users VALUES (1, 'u27', 'c3', '{"name": "User, 27", "plan": "free"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', 1, 0, 1, '3063808e-a50e-692a-77e0-1f1a8847fb11', 747);
INSERT INTO sluice.users VALUES (1, 'u29', 'c1', '{"name": "User, 29", "plan": "free"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', 1, 0, 1, '801b6865-635a-b669-dcb4-58b8da27cdef', 747);
INSERT INTO sluice.users VALUES (1, 'u3', 'c3', '{"name": "User, 3", "plan": "free"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', 1, 0, 1, '64ef6931-c7a7-1aa2-d9c1-db5ec7d571a8', 747);
INSERT INTO sluice.users VALUES (1, 'u31', 'c3', '{"name": "User, 31", "plan": "free"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', 1, 0, 1, '25650c5b-cbe2-a5a4-0efe-7227beed337d', 747);
INSERT INTO sluice.users VALUES (1, 'u33', 'c1', '{"name": "User, 33", "plan": "free"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', 1, 0, 1, '5837c14f-6045-8fe8-0315-ce0115396d91', 747);
INSERT INTO sluice.users VALUES (1, 'u35', 'c3', '{"name": "User, 35", "plan": "free"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', 1, 0, 1, '3a308fb5-4211-05b3-dd3d-ac464bbd842c', 747);
INSERT INTO sluice.users VALUES (1, 'u37', 'c1', '{"name": "User, 37", "plan": "free"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', 1, 0, 1, '4fcdd9af-f2ba-5c2e-f463-7ce41a472325', 747);
INSERT INTO sluice.users VALUES (1, 'u39', 'c3', '{"name": "User, 39", "plan": "free"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', 1, 0, 1, '09a895ed-c0d7-a621-430d-1ddb127eeb30', 747);
INSERT INTO sluice.users VALUES (1, 'u5', 'c1', '{"name": "User, 5", "plan": "free"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', 1, 0, 1, '9d4417e6-5610-51f4-50b3-9c33935ed499', 747);
INSERT INTO sluice.users VALUES (1, 'u7', 'c3', '{"name": "User, 7", "plan": "free"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', 1, 0, 1, 'ef1c6848-ed17-a8fe-8137-24a417dc5716', 747);
INSERT INTO sluice.users VALUES (1, 'u9', 'c1', '{"name": "User, 9", "plan": "free"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:25.185393+00', 1, 0, 1, 'fe74c241-6be3-58f2-be2e-d086781ff357', 747);
INSERT INTO sluice.users VALUES (1, 'u10', 'c2', '{"name": "User, 10", "plan": "pro"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:32.173725+00', '2026-11-30 07:10:32.173725+00', 3, 0, 1, '30d07daa-88b1-acdd-6994-fb4a6a1b8ae6', 766);
INSERT INTO sluice.users VALUES (1, 'u12', 'c0', '{"name": "User, 12", "plan": "pro"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:32.173725+00', '2026-11-30 07:10:32.173725+00', 3, 0, 1, '9e07ebbd-c4e8-c4c0-c5fc-d88380eac2c4', 766);
INSERT INTO sluice.users VALUES (1, 'u14', 'c2', '{"name": "User, 14", "plan": "pro"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:32.173725+00', '2026-11-30 07:10:32.173725+00', 3, 0, 1, 'f435b720-eb85-1a25-bde3-76c8d8ec5079', 766);
INSERT INTO sluice.users VALUES (1, 'u16', 'c0', '{"name": "User, 16", "plan": "pro"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:32.173725+00', '2026-11-30 07:10:32.173725+00', 3, 0, 1, 'cf4e965d-d1ee-029d-7aaf-a422cd3c5b06', 766);
INSERT INTO sluice.users VALUES (1, 'u18', 'c2', '{"name": "User, 18", "plan": "pro"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:32.173725+00', '2026-11-30 07:10:32.173725+00', 3, 0, 1, '5f4bffec-f9fc-3771-d717-48c7bbb74a4e', 766);
INSERT INTO sluice.users VALUES (1, 'u2', 'c2', '{"name": "User, 2", "plan": "pro"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:32.173725+00', '2026-11-30 07:10:32.173725+00', 3, 0, 1, 'c6973616-5569-5e99-a537-9608eebe821f', 766);
INSERT INTO sluice.users VALUES (1, 'u20', 'c0', '{"name": "User, 20", "plan": "pro"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:32.173725+00', '2026-11-30 07:10:32.173725+00', 3, 0, 1, 'c051c0f5-5bac-046c-1fa9-c89de8617585', 766);
INSERT INTO sluice.users VALUES (1, 'u22', 'c2', '{"name": "User, 22", "plan": "pro"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:32.173725+00', '2026-11-30 07:10:32.173725+00', 3, 0, 1, 'd4caf7ec-9d4b-4fc2-98b7-a6b4ce00c60a', 766);
INSERT INTO sluice.users VALUES (1, 'u24', 'c0', '{"name": "User, 24", "plan": "pro"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:32.173725+00', '2026-11-30 07:10:32.173725+00', 3, 0, 1, '6a0dcbe3-78cd-72de-8631-e620cd46e45d', 766);
INSERT INTO sluice.users VALUES (1, 'u26', 'c2', '{"name": "User, 26", "plan": "pro"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:32.173725+00', '2026-11-30 07:10:32.173725+00', 3, 0, 1, '9cb851a0-b308-b44b-b489-c530fcaedd3d', 766);
INSERT INTO sluice.users VALUES (1, 'u28', 'c0', '{"name": "User, 28", "plan": "pro"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:32.173725+00', '2026-11-30 07:10:32.173725+00', 3, 0, 1, '8903f6b5-fee4-cca6-242b-6738d4610dd9', 766);
INSERT INTO sluice.users VALUES (1, 'u30', 'c2', '{"name": "User, 30", "plan": "pro"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:32.173725+00', '2026-11-30 07:10:32.173725+00', 3, 0, 1, '7fcf2f6c-38bf-9927-b1ae-41a5fd6b0906', 766);
INSERT INTO sluice.users VALUES (1, 'u32', 'c0', '{"name": "User, 32", "plan": "pro"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:32.173725+00', '2026-11-30 07:10:32.173725+00', 3, 0, 1, 'e77cffd2-6637-2a5e-f14d-4eefc48a7885', 766);
INSERT INTO sluice.users VALUES (1, 'u34', 'c2', '{"name": "User, 34", "plan": "pro"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:32.173725+00', '2026-11-30 07:10:32.173725+00', 3, 0, 1, '29b383da-5c0f-2cd7-85b7-23cef3c1b31c', 766);
INSERT INTO sluice.users VALUES (1, 'u36', 'c0', '{"name": "User, 36", "plan": "pro"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:32.173725+00', '2026-11-30 07:10:32.173725+00', 3, 0, 1, 'c99b9723-e926-6581-123f-c2d688b3efa8', 766);
INSERT INTO sluice.users VALUES (1, 'u38', 'c2', '{"name": "User, 38", "plan": "pro"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:32.173725+00', '2026-11-30 07:10:32.173725+00', 3, 0, 1, 'df6301e9-2525-cb26-d228-e816bc36b6e6', 766);
INSERT INTO sluice.users VALUES (1, 'u4', 'c0', '{"name": "User, 4", "plan": "pro"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:32.173725+00', '2026-11-30 07:10:32.173725+00', 3, 0, 1, 'ce5eeef5-b3ef-1477-39ca-f43e5b898755', 766);
INSERT INTO sluice.users VALUES (1, 'u6', 'c2', '{"name": "User, 6", "plan": "pro"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:32.173725+00', '2026-11-30 07:10:32.173725+00', 3, 0, 1, '499ae8c9-1a2a-9ee8-af24-f6af6788d6b6', 766);
INSERT INTO sluice.users VALUES (1, 'u8', 'c0', '{"name": "User, 8", "plan": "pro"}', '2026-11-30 07:10:25.185393+00', '2026-11-30 07:10:32.173725+00', '2026-11-30 07:10:32.173725+00', 3, 0, 1, 'df3b9384-cbb7-21fe-6926-22bc3750c77e', 766);
INSERT INTO sluice.users VALUES (1, 'single', NULL, '{"plan": "pro"}', '2026-11-30 07:11:03.536975+00', '2026-11-30 07:11:03.536975+00', '2026-11-30 07:11:03.536975+00', NULL, NULL, NULL, NULL, 810);


--
-- Data for Name: workers; Type: TABLE DATA; Schema: sluice; Owner: -
--



--
-- Name: change_seq; Type: SEQUENCE SET; Schema: sluice; Owner: -
--

SELECT pg_catalog.setval('sluice.change_seq', 24, true);


--
-- Name: deletions_deletion_id_seq; Type: SEQUENCE SET; Schema: sluice; Owner: -
--

SELECT pg_catalog.setval('sluice.deletions_deletion_id_seq', 1, true);


--
-- Name: environments_environment_id_seq; Type: SEQUENCE SET; Schema: sluice; Owner: -
--

SELECT pg_catalog.setval('sluice.environments_environment_id_seq', 1, true);


--
-- Name: event_retirements_retirement_id_seq; Type: SEQUENCE SET; Schema: sluice; Owner: -
--

SELECT pg_catalog.setval('sluice.event_retirements_retirement_id_seq', 1, false);


--
-- Name: exports_export_id_seq; Type: SEQUENCE SET; Schema: sluice; Owner: -
--

SELECT pg_catalog.setval('sluice.exports_export_id_seq', 1, true);


--
-- Name: inbox_files_arrival_seq; Type: SEQUENCE SET; Schema: sluice; Owner: -
--

SELECT pg_catalog.setval('sluice.inbox_files_arrival_seq', 1, false);


--
-- Name: lake_files_file_id_seq; Type: SEQUENCE SET; Schema: sluice; Owner: -
--

SELECT pg_catalog.setval('sluice.lake_files_file_id_seq', 1, false);


--
-- Name: lane_positions; Type: SEQUENCE SET; Schema: sluice; Owner: -
--

SELECT pg_catalog.setval('sluice.lane_positions', 7, true);


--
-- Name: loads_load_id_seq; Type: SEQUENCE SET; Schema: sluice; Owner: -
--

SELECT pg_catalog.setval('sluice.loads_load_id_seq', 6, true);


--
-- Name: notification_deliveries_delivery_id_seq; Type: SEQUENCE SET; Schema: sluice; Owner: -
--

SELECT pg_catalog.setval('sluice.notification_deliveries_delivery_id_seq', 1, false);


--
-- Name: properties_property_id_seq; Type: SEQUENCE SET; Schema: sluice; Owner: -
--

SELECT pg_catalog.setval('sluice.properties_property_id_seq', 11, true);


--
-- Name: schedule_runs_run_id_seq; Type: SEQUENCE SET; Schema: sluice; Owner: -
--

SELECT pg_catalog.setval('sluice.schedule_runs_run_id_seq', 1, false);


--
-- Name: segments_segment_id_seq; Type: SEQUENCE SET; Schema: sluice; Owner: -
--

SELECT pg_catalog.setval('sluice.segments_segment_id_seq', 1, true);


--
-- Name: survey_modules_module_id_seq; Type: SEQUENCE SET; Schema: sluice; Owner: -
--

SELECT pg_catalog.setval('sluice.survey_modules_module_id_seq', 1, false);


--
-- Name: surveys_survey_id_seq; Type: SEQUENCE SET; Schema: sluice; Owner: -
--

SELECT pg_catalog.setval('sluice.surveys_survey_id_seq', 1, false);


--
-- Name: tasks_task_id_seq; Type: SEQUENCE SET; Schema: sluice; Owner: -
--

SELECT pg_catalog.setval('sluice.tasks_task_id_seq', 13, true);


--
-- Name: titled_items_item_id_seq; Type: SEQUENCE SET; Schema: sluice; Owner: -
--

SELECT pg_catalog.setval('sluice.titled_items_item_id_seq', 1, false);


--
-- Name: api_keys api_keys_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (key_id);


--
-- Name: change_log change_log_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.change_log
    ADD CONSTRAINT change_log_pkey PRIMARY KEY (is_only);


--
-- Name: companies companies_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.companies
    ADD CONSTRAINT companies_pkey PRIMARY KEY (environment_id, company_id);


--
-- Name: console_links console_links_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.console_links
    ADD CONSTRAINT console_links_pkey PRIMARY KEY (digest);


--
-- Name: console_sessions console_sessions_digest_key; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.console_sessions
    ADD CONSTRAINT console_sessions_digest_key UNIQUE (digest);


--
-- Name: console_sessions console_sessions_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.console_sessions
    ADD CONSTRAINT console_sessions_pkey PRIMARY KEY (session_id);


--
-- Name: deletion_ids deletion_ids_id_key; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.deletion_ids
    ADD CONSTRAINT deletion_ids_id_key UNIQUE (deletion_id, id);


--
-- Name: deletion_ids deletion_ids_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.deletion_ids
    ADD CONSTRAINT deletion_ids_pkey PRIMARY KEY (deletion_id, "position");


--
-- Name: deletions deletions_job_id_key; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.deletions
    ADD CONSTRAINT deletions_job_id_key UNIQUE (job_id);


--
-- Name: deletions deletions_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.deletions
    ADD CONSTRAINT deletions_pkey PRIMARY KEY (deletion_id);


--
-- Name: environment_uses environment_uses_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.environment_uses
    ADD CONSTRAINT environment_uses_pkey PRIMARY KEY (environment_id, name);


--
-- Name: environments environments_app_token_key; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.environments
    ADD CONSTRAINT environments_app_token_key UNIQUE (app_token);


--
-- Name: environments environments_name_key; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.environments
    ADD CONSTRAINT environments_name_key UNIQUE (name);


--
-- Name: environments environments_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.environments
    ADD CONSTRAINT environments_pkey PRIMARY KEY (environment_id);


--
-- Name: event_ids event_ids_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.event_ids
    ADD CONSTRAINT event_ids_pkey PRIMARY KEY (environment_id, event_id, user_id);


--
-- Name: event_prunings event_prunings_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.event_prunings
    ADD CONSTRAINT event_prunings_pkey PRIMARY KEY (work);


--
-- Name: event_removals event_removals_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.event_removals
    ADD CONSTRAINT event_removals_pkey PRIMARY KEY (environment_id);


--
-- Name: event_retention event_retention_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.event_retention
    ADD CONSTRAINT event_retention_pkey PRIMARY KEY (environment_id, key);


--
-- Name: event_retirements event_retirements_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.event_retirements
    ADD CONSTRAINT event_retirements_pkey PRIMARY KEY (retirement_id);


--
-- Name: events events_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (environment_id, inserted_at, event_id, user_id) WITH (fillfactor='100');


--
-- Name: events_2026_01 events_2026_01_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.events_2026_01
    ADD CONSTRAINT events_2026_01_pkey PRIMARY KEY (environment_id, inserted_at, event_id, user_id) WITH (fillfactor='100');


--
-- Name: events_2026_02 events_2026_02_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.events_2026_02
    ADD CONSTRAINT events_2026_02_pkey PRIMARY KEY (environment_id, inserted_at, event_id, user_id) WITH (fillfactor='100');


--
-- Name: events_2026_03 events_2026_03_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.events_2026_03
    ADD CONSTRAINT events_2026_03_pkey PRIMARY KEY (environment_id, inserted_at, event_id, user_id) WITH (fillfactor='100');


--
-- Name: events_2026_11 events_2026_11_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.events_2026_11
    ADD CONSTRAINT events_2026_11_pkey PRIMARY KEY (environment_id, inserted_at, event_id, user_id) WITH (fillfactor='100');


--
-- Name: events_2026_12 events_2026_12_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.events_2026_12
    ADD CONSTRAINT events_2026_12_pkey PRIMARY KEY (environment_id, inserted_at, event_id, user_id) WITH (fillfactor='100');


--
-- Name: export_files export_files_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.export_files
    ADD CONSTRAINT export_files_pkey PRIMARY KEY (export_id, filename);


--
-- Name: exports exports_job_id_key; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.exports
    ADD CONSTRAINT exports_job_id_key UNIQUE (job_id);


--
-- Name: exports exports_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.exports
    ADD CONSTRAINT exports_pkey PRIMARY KEY (export_id);


--
-- Name: idempotency_keys idempotency_keys_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.idempotency_keys
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (environment_id, idempotency_key);


--
-- Name: inbox_files inbox_files_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.inbox_files
    ADD CONSTRAINT inbox_files_pkey PRIMARY KEY (file_id);


--
-- Name: keyed_items keyed_items_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.keyed_items
    ADD CONSTRAINT keyed_items_pkey PRIMARY KEY (environment_id, kind, key);


--
-- Name: lake_columns lake_columns_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.lake_columns
    ADD CONSTRAINT lake_columns_pkey PRIMARY KEY (environment_id, key);


--
-- Name: lake_files lake_files_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.lake_files
    ADD CONSTRAINT lake_files_pkey PRIMARY KEY (file_id);


--
-- Name: lake_files lake_files_ref_key; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.lake_files
    ADD CONSTRAINT lake_files_ref_key UNIQUE (file_ref);


--
-- Name: lake_months lake_months_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.lake_months
    ADD CONSTRAINT lake_months_pkey PRIMARY KEY (environment_id, month);


--
-- Name: lake_tables lake_tables_folder_key; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.lake_tables
    ADD CONSTRAINT lake_tables_folder_key UNIQUE (folder);


--
-- Name: lake_tables lake_tables_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.lake_tables
    ADD CONSTRAINT lake_tables_pkey PRIMARY KEY (environment_id);


--
-- Name: load_chunk_keys load_chunk_keys_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_chunk_keys
    ADD CONSTRAINT load_chunk_keys_pkey PRIMARY KEY (load_id, chunk_no, entity);


--
-- Name: load_chunks load_chunks_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_chunks
    ADD CONSTRAINT load_chunks_pkey PRIMARY KEY (load_id, chunk_no);


--
-- Name: load_event_replays load_event_replays_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_event_replays
    ADD CONSTRAINT load_event_replays_pkey PRIMARY KEY (load_id, chunk_no, key_hash);


--
-- Name: load_findings load_findings_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_findings
    ADD CONSTRAINT load_findings_pkey PRIMARY KEY (load_id, entity, property, rule);


--
-- Name: load_guards load_guards_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_guards
    ADD CONSTRAINT load_guards_pkey PRIMARY KEY (load_id);


--
-- Name: load_kinds load_kinds_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_kinds
    ADD CONSTRAINT load_kinds_pkey PRIMARY KEY (load_id, kind);


--
-- Name: load_lineage load_lineage_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_lineage
    ADD CONSTRAINT load_lineage_pkey PRIMARY KEY (load_id);


--
-- Name: load_mends load_mends_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_mends
    ADD CONSTRAINT load_mends_pkey PRIMARY KEY (mended_by, mended_row);


--
-- Name: load_mirrors load_mirrors_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_mirrors
    ADD CONSTRAINT load_mirrors_pkey PRIMARY KEY (load_id);


--
-- Name: load_missing load_missing_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_missing
    ADD CONSTRAINT load_missing_pkey PRIMARY KEY (load_id, key);


--
-- Name: load_plans load_plans_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_plans
    ADD CONSTRAINT load_plans_pkey PRIMARY KEY (load_id);


--
-- Name: load_rejects load_rejects_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_rejects
    ADD CONSTRAINT load_rejects_pkey PRIMARY KEY (load_id, row_number);


--
-- Name: load_replays load_replays_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_replays
    ADD CONSTRAINT load_replays_pkey PRIMARY KEY (load_id, entity, key_hash);


--
-- Name: load_rules load_rules_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_rules
    ADD CONSTRAINT load_rules_pkey PRIMARY KEY (load_id);


--
-- Name: load_undos load_undos_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_undos
    ADD CONSTRAINT load_undos_pkey PRIMARY KEY (load_id);


--
-- Name: loads loads_job_id_key; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.loads
    ADD CONSTRAINT loads_job_id_key UNIQUE (job_id);


--
-- Name: loads loads_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.loads
    ADD CONSTRAINT loads_pkey PRIMARY KEY (load_id);


--
-- Name: migrations migrations_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (name);


--
-- Name: notification_attempts notification_attempts_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.notification_attempts
    ADD CONSTRAINT notification_attempts_pkey PRIMARY KEY (delivery_id, attempt);


--
-- Name: notification_deliveries notification_deliveries_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.notification_deliveries
    ADD CONSTRAINT notification_deliveries_pkey PRIMARY KEY (delivery_id);


--
-- Name: notification_deliveries notification_deliveries_public_key; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.notification_deliveries
    ADD CONSTRAINT notification_deliveries_public_key UNIQUE (public_id);


--
-- Name: notification_events notification_events_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.notification_events
    ADD CONSTRAINT notification_events_pkey PRIMARY KEY (event_id);


--
-- Name: notification_subscriptions notification_subscriptions_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.notification_subscriptions
    ADD CONSTRAINT notification_subscriptions_pkey PRIMARY KEY (subscription_id);


--
-- Name: personal_loads personal_loads_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.personal_loads
    ADD CONSTRAINT personal_loads_pkey PRIMARY KEY (load_id);


--
-- Name: planned_chunks planned_chunks_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.planned_chunks
    ADD CONSTRAINT planned_chunks_pkey PRIMARY KEY (load_id, chunk_no, entity);


--
-- Name: properties properties_key_key; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.properties
    ADD CONSTRAINT properties_key_key UNIQUE (environment_id, entity, key);


--
-- Name: properties properties_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.properties
    ADD CONSTRAINT properties_pkey PRIMARY KEY (property_id);


--
-- Name: rates rates_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.rates
    ADD CONSTRAINT rates_pkey PRIMARY KEY (environment_id, minutes, begins_at);


--
-- Name: received_files received_files_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.received_files
    ADD CONSTRAINT received_files_pkey PRIMARY KEY (file_ref);


--
-- Name: rules rules_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.rules
    ADD CONSTRAINT rules_pkey PRIMARY KEY (environment_id, version);


--
-- Name: schedule_memory schedule_memory_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.schedule_memory
    ADD CONSTRAINT schedule_memory_pkey PRIMARY KEY (environment_id, schedule_name, item);


--
-- Name: schedule_run_items schedule_run_items_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.schedule_run_items
    ADD CONSTRAINT schedule_run_items_pkey PRIMARY KEY (run_id, item);


--
-- Name: schedule_runs schedule_runs_due_key; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.schedule_runs
    ADD CONSTRAINT schedule_runs_due_key UNIQUE (environment_id, schedule_name, due_at);


--
-- Name: schedule_runs schedule_runs_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.schedule_runs
    ADD CONSTRAINT schedule_runs_pkey PRIMARY KEY (run_id);


--
-- Name: schedules schedules_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.schedules
    ADD CONSTRAINT schedules_pkey PRIMARY KEY (environment_id, schedule_name);


--
-- Name: segments segments_key_key; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.segments
    ADD CONSTRAINT segments_key_key UNIQUE (environment_id, key);


--
-- Name: segments segments_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.segments
    ADD CONSTRAINT segments_pkey PRIMARY KEY (segment_id);


--
-- Name: signing_keys signing_keys_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.signing_keys
    ADD CONSTRAINT signing_keys_pkey PRIMARY KEY (purpose);


--
-- Name: suppression_keys suppression_keys_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.suppression_keys
    ADD CONSTRAINT suppression_keys_pkey PRIMARY KEY (environment_id);


--
-- Name: suppressions suppressions_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.suppressions
    ADD CONSTRAINT suppressions_pkey PRIMARY KEY (environment_id, id_hash);


--
-- Name: survey_modules survey_modules_key_key; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.survey_modules
    ADD CONSTRAINT survey_modules_key_key UNIQUE (survey_id, key);


--
-- Name: survey_modules survey_modules_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.survey_modules
    ADD CONSTRAINT survey_modules_pkey PRIMARY KEY (module_id);


--
-- Name: survey_modules survey_modules_position_key; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.survey_modules
    ADD CONSTRAINT survey_modules_position_key UNIQUE (survey_id, "position") DEFERRABLE;


--
-- Name: surveys surveys_key_key; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.surveys
    ADD CONSTRAINT surveys_key_key UNIQUE (environment_id, key);


--
-- Name: surveys surveys_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.surveys
    ADD CONSTRAINT surveys_pkey PRIMARY KEY (survey_id);


--
-- Name: tasks tasks_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.tasks
    ADD CONSTRAINT tasks_pkey PRIMARY KEY (task_id);


--
-- Name: tasks tasks_subject_key; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.tasks
    ADD CONSTRAINT tasks_subject_key UNIQUE (kind, subject_id, part);


--
-- Name: titled_items titled_items_key_key; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.titled_items
    ADD CONSTRAINT titled_items_key_key UNIQUE (environment_id, kind, key);


--
-- Name: titled_items titled_items_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.titled_items
    ADD CONSTRAINT titled_items_pkey PRIMARY KEY (item_id);


--
-- Name: uploads uploads_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.uploads
    ADD CONSTRAINT uploads_pkey PRIMARY KEY (upload_id);


--
-- Name: users users_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (environment_id, user_id);


--
-- Name: workers workers_pkey; Type: CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.workers
    ADD CONSTRAINT workers_pkey PRIMARY KEY (worker_id);


--
-- Name: api_keys_environment_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX api_keys_environment_idx ON sluice.api_keys USING btree (environment_id);


--
-- Name: changes_key_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX changes_key_idx ON ONLY sluice.changes USING btree (environment_id, hashtext(key));


--
-- Name: changes_2026_11_30_environment_id_hashtext_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX changes_2026_11_30_environment_id_hashtext_idx ON sluice.changes_2026_11_30 USING btree (environment_id, hashtext(key));


--
-- Name: changes_position_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX changes_position_idx ON ONLY sluice.changes USING brin ("position", load_id) WITH (autosummarize='on');


--
-- Name: changes_2026_11_30_position_load_id_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX changes_2026_11_30_position_load_id_idx ON sluice.changes_2026_11_30 USING brin ("position", load_id) WITH (autosummarize='on');


--
-- Name: changes_2026_12_01_environment_id_hashtext_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX changes_2026_12_01_environment_id_hashtext_idx ON sluice.changes_2026_12_01 USING btree (environment_id, hashtext(key));


--
-- Name: changes_2026_12_01_position_load_id_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX changes_2026_12_01_position_load_id_idx ON sluice.changes_2026_12_01 USING brin ("position", load_id) WITH (autosummarize='on');


--
-- Name: changes_2026_12_02_environment_id_hashtext_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX changes_2026_12_02_environment_id_hashtext_idx ON sluice.changes_2026_12_02 USING btree (environment_id, hashtext(key));


--
-- Name: changes_2026_12_02_position_load_id_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX changes_2026_12_02_position_load_id_idx ON sluice.changes_2026_12_02 USING brin ("position", load_id) WITH (autosummarize='on');


--
-- Name: changes_2026_12_03_environment_id_hashtext_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX changes_2026_12_03_environment_id_hashtext_idx ON sluice.changes_2026_12_03 USING btree (environment_id, hashtext(key));


--
-- Name: changes_2026_12_03_position_load_id_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX changes_2026_12_03_position_load_id_idx ON sluice.changes_2026_12_03 USING brin ("position", load_id) WITH (autosummarize='on');


--
-- Name: changes_2026_12_04_environment_id_hashtext_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX changes_2026_12_04_environment_id_hashtext_idx ON sluice.changes_2026_12_04 USING btree (environment_id, hashtext(key));


--
-- Name: changes_2026_12_04_position_load_id_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX changes_2026_12_04_position_load_id_idx ON sluice.changes_2026_12_04 USING brin ("position", load_id) WITH (autosummarize='on');


--
-- Name: changes_2026_12_05_environment_id_hashtext_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX changes_2026_12_05_environment_id_hashtext_idx ON sluice.changes_2026_12_05 USING btree (environment_id, hashtext(key));


--
-- Name: changes_2026_12_05_position_load_id_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX changes_2026_12_05_position_load_id_idx ON sluice.changes_2026_12_05 USING brin ("position", load_id) WITH (autosummarize='on');


--
-- Name: changes_2026_12_06_environment_id_hashtext_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX changes_2026_12_06_environment_id_hashtext_idx ON sluice.changes_2026_12_06 USING btree (environment_id, hashtext(key));


--
-- Name: changes_2026_12_06_position_load_id_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX changes_2026_12_06_position_load_id_idx ON sluice.changes_2026_12_06 USING brin ("position", load_id) WITH (autosummarize='on');


--
-- Name: changes_2026_12_07_environment_id_hashtext_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX changes_2026_12_07_environment_id_hashtext_idx ON sluice.changes_2026_12_07 USING btree (environment_id, hashtext(key));


--
-- Name: changes_2026_12_07_position_load_id_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX changes_2026_12_07_position_load_id_idx ON sluice.changes_2026_12_07 USING brin ("position", load_id) WITH (autosummarize='on');


--
-- Name: changes_default_environment_id_hashtext_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX changes_default_environment_id_hashtext_idx ON sluice.changes_default USING btree (environment_id, hashtext(key));


--
-- Name: changes_default_position_load_id_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX changes_default_position_load_id_idx ON sluice.changes_default USING brin ("position", load_id) WITH (autosummarize='on');


--
-- Name: console_sessions_listing_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX console_sessions_listing_idx ON sluice.console_sessions USING btree (environment_id, created_at DESC);


--
-- Name: deletion_ids_open_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX deletion_ids_open_idx ON sluice.deletion_ids USING btree (deletion_id, "position") WHERE (outcome IS NULL);


--
-- Name: deletions_lane_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX deletions_lane_idx ON sluice.deletions USING btree (environment_id, lane_position) WHERE (status = ANY (ARRAY['queued'::text, 'processing'::text]));


--
-- Name: deletions_listing_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX deletions_listing_idx ON sluice.deletions USING btree (environment_id, job_id DESC);


--
-- Name: event_retirements_open_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX event_retirements_open_idx ON sluice.event_retirements USING btree (retirement_id) WHERE (state <> 'removed'::text);


--
-- Name: events_company_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX events_company_idx ON ONLY sluice.events USING btree (environment_id, company_id, inserted_at) WHERE (company_id IS NOT NULL);


--
-- Name: events_2026_01_environment_id_company_id_inserted_at_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX events_2026_01_environment_id_company_id_inserted_at_idx ON sluice.events_2026_01 USING btree (environment_id, company_id, inserted_at) WHERE (company_id IS NOT NULL);


--
-- Name: events_name_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX events_name_idx ON ONLY sluice.events USING btree (environment_id, event_name);


--
-- Name: events_2026_01_environment_id_event_name_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX events_2026_01_environment_id_event_name_idx ON sluice.events_2026_01 USING btree (environment_id, event_name);


--
-- Name: events_user_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX events_user_idx ON ONLY sluice.events USING btree (environment_id, user_id, inserted_at);


--
-- Name: events_2026_01_environment_id_user_id_inserted_at_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX events_2026_01_environment_id_user_id_inserted_at_idx ON sluice.events_2026_01 USING btree (environment_id, user_id, inserted_at);


--
-- Name: events_position_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX events_position_idx ON ONLY sluice.events USING brin ("position") WITH (autosummarize='on');


--
-- Name: events_2026_01_position_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX events_2026_01_position_idx ON sluice.events_2026_01 USING brin ("position") WITH (autosummarize='on');


--
-- Name: events_2026_02_environment_id_company_id_inserted_at_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX events_2026_02_environment_id_company_id_inserted_at_idx ON sluice.events_2026_02 USING btree (environment_id, company_id, inserted_at) WHERE (company_id IS NOT NULL);


--
-- Name: events_2026_02_environment_id_event_name_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX events_2026_02_environment_id_event_name_idx ON sluice.events_2026_02 USING btree (environment_id, event_name);


--
-- Name: events_2026_02_environment_id_user_id_inserted_at_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX events_2026_02_environment_id_user_id_inserted_at_idx ON sluice.events_2026_02 USING btree (environment_id, user_id, inserted_at);


--
-- Name: events_2026_02_position_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX events_2026_02_position_idx ON sluice.events_2026_02 USING brin ("position") WITH (autosummarize='on');


--
-- Name: events_2026_03_environment_id_company_id_inserted_at_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX events_2026_03_environment_id_company_id_inserted_at_idx ON sluice.events_2026_03 USING btree (environment_id, company_id, inserted_at) WHERE (company_id IS NOT NULL);


--
-- Name: events_2026_03_environment_id_event_name_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX events_2026_03_environment_id_event_name_idx ON sluice.events_2026_03 USING btree (environment_id, event_name);


--
-- Name: events_2026_03_environment_id_user_id_inserted_at_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX events_2026_03_environment_id_user_id_inserted_at_idx ON sluice.events_2026_03 USING btree (environment_id, user_id, inserted_at);


--
-- Name: events_2026_03_position_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX events_2026_03_position_idx ON sluice.events_2026_03 USING brin ("position") WITH (autosummarize='on');


--
-- Name: events_2026_11_environment_id_company_id_inserted_at_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX events_2026_11_environment_id_company_id_inserted_at_idx ON sluice.events_2026_11 USING btree (environment_id, company_id, inserted_at) WHERE (company_id IS NOT NULL);


--
-- Name: events_2026_11_environment_id_event_name_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX events_2026_11_environment_id_event_name_idx ON sluice.events_2026_11 USING btree (environment_id, event_name);


--
-- Name: events_2026_11_environment_id_user_id_inserted_at_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX events_2026_11_environment_id_user_id_inserted_at_idx ON sluice.events_2026_11 USING btree (environment_id, user_id, inserted_at);


--
-- Name: events_2026_11_position_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX events_2026_11_position_idx ON sluice.events_2026_11 USING brin ("position") WITH (autosummarize='on');


--
-- Name: events_2026_12_environment_id_company_id_inserted_at_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX events_2026_12_environment_id_company_id_inserted_at_idx ON sluice.events_2026_12 USING btree (environment_id, company_id, inserted_at) WHERE (company_id IS NOT NULL);


--
-- Name: events_2026_12_environment_id_event_name_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX events_2026_12_environment_id_event_name_idx ON sluice.events_2026_12 USING btree (environment_id, event_name);


--
-- Name: events_2026_12_environment_id_user_id_inserted_at_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX events_2026_12_environment_id_user_id_inserted_at_idx ON sluice.events_2026_12 USING btree (environment_id, user_id, inserted_at);


--
-- Name: events_2026_12_position_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX events_2026_12_position_idx ON sluice.events_2026_12 USING brin ("position") WITH (autosummarize='on');


--
-- Name: exports_leftovers_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX exports_leftovers_idx ON sluice.exports USING btree (ended_at) WHERE ((status = ANY (ARRAY['failed'::text, 'cancelled'::text])) AND (files_expired_at IS NULL));


--
-- Name: exports_listing_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX exports_listing_idx ON sluice.exports USING btree (environment_id, job_id DESC);


--
-- Name: exports_open_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX exports_open_idx ON sluice.exports USING btree (export_id) WHERE (status = ANY (ARRAY['queued'::text, 'processing'::text]));


--
-- Name: idempotency_keys_created_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX idempotency_keys_created_idx ON sluice.idempotency_keys USING btree (created_at);


--
-- Name: inbox_files_concluded_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX inbox_files_concluded_idx ON sluice.inbox_files USING btree (inbox_id, concluded_at) WHERE (state = 'concluded'::text);


--
-- Name: inbox_files_open_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX inbox_files_open_idx ON sluice.inbox_files USING btree (inbox_id, environment_id, arrival) WHERE (state <> 'concluded'::text);


--
-- Name: inbox_files_place_key; Type: INDEX; Schema: sluice; Owner: -
--

CREATE UNIQUE INDEX inbox_files_place_key ON sluice.inbox_files USING btree (inbox_id, environment_id, outcome, placed_as) WHERE (placed_as IS NOT NULL);


--
-- Name: inbox_files_taken_key; Type: INDEX; Schema: sluice; Owner: -
--

CREATE UNIQUE INDEX inbox_files_taken_key ON sluice.inbox_files USING btree (inbox_id, environment_id, folder, name, inode, size, modified_ns) WHERE (state <> 'concluded'::text);


--
-- Name: lake_files_leftover_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX lake_files_leftover_idx ON sluice.lake_files USING btree (file_id) WHERE (state <> 'stored'::text);


--
-- Name: lake_files_stored_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX lake_files_stored_idx ON sluice.lake_files USING btree (environment_id, kind, first_at) WHERE (state = 'stored'::text);


--
-- Name: load_chunks_open_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX load_chunks_open_idx ON sluice.load_chunks USING btree (load_id, chunk_no) WHERE (done_at IS NULL);


--
-- Name: load_mends_load_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX load_mends_load_idx ON sluice.load_mends USING btree (load_id, row_number);


--
-- Name: load_rejects_cause_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX load_rejects_cause_idx ON sluice.load_rejects USING btree (load_id, cause, row_number);


--
-- Name: load_undos_undoes_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX load_undos_undoes_idx ON sluice.load_undos USING gin (undoes);


--
-- Name: loads_duplicate_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX loads_duplicate_idx ON sluice.loads USING btree (environment_id, sha256) WHERE (status = ANY (ARRAY['queued'::text, 'processing'::text, 'held'::text, 'completed'::text]));


--
-- Name: loads_held_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX loads_held_idx ON sluice.loads USING btree (environment_id) WHERE (status = 'held'::text);


--
-- Name: loads_lane_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX loads_lane_idx ON sluice.loads USING btree (environment_id, lane_position) WHERE (status = ANY (ARRAY['queued'::text, 'processing'::text]));


--
-- Name: loads_listing_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX loads_listing_idx ON sluice.loads USING btree (environment_id, job_id DESC);


--
-- Name: loads_rejects_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX loads_rejects_idx ON sluice.loads USING btree (environment_id, job_id) WHERE ((status = 'completed'::text) AND (rows_rejected > 0) AND (NOT dry_run));


--
-- Name: notification_deliveries_address_key; Type: INDEX; Schema: sluice; Owner: -
--

CREATE UNIQUE INDEX notification_deliveries_address_key ON sluice.notification_deliveries USING btree (event_id, lower(target)) WHERE (channel = 'email'::text);


--
-- Name: notification_deliveries_dead_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX notification_deliveries_dead_idx ON sluice.notification_deliveries USING btree (delivery_id) WHERE (state = 'dead'::text);


--
-- Name: notification_deliveries_event_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX notification_deliveries_event_idx ON sluice.notification_deliveries USING btree (event_id);


--
-- Name: notification_deliveries_pending_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX notification_deliveries_pending_idx ON sluice.notification_deliveries USING btree (delivery_id) WHERE (state = 'pending'::text);


--
-- Name: notification_deliveries_subscription_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX notification_deliveries_subscription_idx ON sluice.notification_deliveries USING btree (subscription_id);


--
-- Name: notification_events_created_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX notification_events_created_idx ON sluice.notification_events USING btree (created_at);


--
-- Name: notification_events_job_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX notification_events_job_idx ON sluice.notification_events USING btree (job_id) WHERE (job_id IS NOT NULL);


--
-- Name: notification_subscriptions_environment_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX notification_subscriptions_environment_idx ON sluice.notification_subscriptions USING btree (environment_id);


--
-- Name: planned_events_load_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX planned_events_load_idx ON sluice.planned_events USING btree (load_id);


--
-- Name: planned_rows_place_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX planned_rows_place_idx ON sluice.planned_rows USING btree (load_id, entity, is_new, chunk_no);


--
-- Name: planned_rows_repeated_key; Type: INDEX; Schema: sluice; Owner: -
--

CREATE UNIQUE INDEX planned_rows_repeated_key ON sluice.planned_rows USING btree (load_id, entity, key) WHERE is_repeated;


--
-- Name: received_files_age_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX received_files_age_idx ON sluice.received_files USING btree (received_at);


--
-- Name: schedule_runs_ended_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX schedule_runs_ended_idx ON sluice.schedule_runs USING btree (ended_at) WHERE (ended_at IS NOT NULL);


--
-- Name: schedule_runs_one_at_a_time; Type: INDEX; Schema: sluice; Owner: -
--

CREATE UNIQUE INDEX schedule_runs_one_at_a_time ON sluice.schedule_runs USING btree (environment_id, schedule_name) WHERE (status = 'waiting'::text);


--
-- Name: schedule_runs_open_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX schedule_runs_open_idx ON sluice.schedule_runs USING btree (due_at) WHERE (status = ANY (ARRAY['queued'::text, 'waiting'::text]));


--
-- Name: tasks_group_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX tasks_group_idx ON sluice.tasks USING btree (kind, group_id) WHERE ((group_id IS NOT NULL) AND (lease_until IS NOT NULL));


--
-- Name: tasks_running_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX tasks_running_idx ON sluice.tasks USING btree (kind, environment_id) WHERE (lease_until IS NOT NULL);


--
-- Name: tasks_waiting_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX tasks_waiting_idx ON sluice.tasks USING btree (kind, environment_id, task_id) WHERE (lease_until IS NULL);


--
-- Name: uploads_environment_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX uploads_environment_idx ON sluice.uploads USING btree (environment_id, created_at);


--
-- Name: uploads_expiry_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX uploads_expiry_idx ON sluice.uploads USING btree (expires_at);


--
-- Name: uploads_file_of_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX uploads_file_of_idx ON sluice.uploads USING btree (file_of) WHERE (file_of IS NOT NULL);


--
-- Name: users_company_idx; Type: INDEX; Schema: sluice; Owner: -
--

CREATE INDEX users_company_idx ON sluice.users USING btree (environment_id, company_id) WHERE (company_id IS NOT NULL);


--
-- Name: changes_2026_11_30_environment_id_hashtext_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.changes_key_idx ATTACH PARTITION sluice.changes_2026_11_30_environment_id_hashtext_idx;


--
-- Name: changes_2026_11_30_position_load_id_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.changes_position_idx ATTACH PARTITION sluice.changes_2026_11_30_position_load_id_idx;


--
-- Name: changes_2026_12_01_environment_id_hashtext_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.changes_key_idx ATTACH PARTITION sluice.changes_2026_12_01_environment_id_hashtext_idx;


--
-- Name: changes_2026_12_01_position_load_id_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.changes_position_idx ATTACH PARTITION sluice.changes_2026_12_01_position_load_id_idx;


--
-- Name: changes_2026_12_02_environment_id_hashtext_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.changes_key_idx ATTACH PARTITION sluice.changes_2026_12_02_environment_id_hashtext_idx;


--
-- Name: changes_2026_12_02_position_load_id_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.changes_position_idx ATTACH PARTITION sluice.changes_2026_12_02_position_load_id_idx;


--
-- Name: changes_2026_12_03_environment_id_hashtext_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.changes_key_idx ATTACH PARTITION sluice.changes_2026_12_03_environment_id_hashtext_idx;


--
-- Name: changes_2026_12_03_position_load_id_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.changes_position_idx ATTACH PARTITION sluice.changes_2026_12_03_position_load_id_idx;


--
-- Name: changes_2026_12_04_environment_id_hashtext_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.changes_key_idx ATTACH PARTITION sluice.changes_2026_12_04_environment_id_hashtext_idx;


--
-- Name: changes_2026_12_04_position_load_id_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.changes_position_idx ATTACH PARTITION sluice.changes_2026_12_04_position_load_id_idx;


--
-- Name: changes_2026_12_05_environment_id_hashtext_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.changes_key_idx ATTACH PARTITION sluice.changes_2026_12_05_environment_id_hashtext_idx;


--
-- Name: changes_2026_12_05_position_load_id_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.changes_position_idx ATTACH PARTITION sluice.changes_2026_12_05_position_load_id_idx;


--
-- Name: changes_2026_12_06_environment_id_hashtext_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.changes_key_idx ATTACH PARTITION sluice.changes_2026_12_06_environment_id_hashtext_idx;


--
-- Name: changes_2026_12_06_position_load_id_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.changes_position_idx ATTACH PARTITION sluice.changes_2026_12_06_position_load_id_idx;


--
-- Name: changes_2026_12_07_environment_id_hashtext_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.changes_key_idx ATTACH PARTITION sluice.changes_2026_12_07_environment_id_hashtext_idx;


--
-- Name: changes_2026_12_07_position_load_id_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.changes_position_idx ATTACH PARTITION sluice.changes_2026_12_07_position_load_id_idx;


--
-- Name: changes_default_environment_id_hashtext_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.changes_key_idx ATTACH PARTITION sluice.changes_default_environment_id_hashtext_idx;


--
-- Name: changes_default_position_load_id_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.changes_position_idx ATTACH PARTITION sluice.changes_default_position_load_id_idx;


--
-- Name: events_2026_01_environment_id_company_id_inserted_at_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.events_company_idx ATTACH PARTITION sluice.events_2026_01_environment_id_company_id_inserted_at_idx;


--
-- Name: events_2026_01_environment_id_event_name_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.events_name_idx ATTACH PARTITION sluice.events_2026_01_environment_id_event_name_idx;


--
-- Name: events_2026_01_environment_id_user_id_inserted_at_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.events_user_idx ATTACH PARTITION sluice.events_2026_01_environment_id_user_id_inserted_at_idx;


--
-- Name: events_2026_01_pkey; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.events_pkey ATTACH PARTITION sluice.events_2026_01_pkey;


--
-- Name: events_2026_01_position_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.events_position_idx ATTACH PARTITION sluice.events_2026_01_position_idx;


--
-- Name: events_2026_02_environment_id_company_id_inserted_at_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.events_company_idx ATTACH PARTITION sluice.events_2026_02_environment_id_company_id_inserted_at_idx;


--
-- Name: events_2026_02_environment_id_event_name_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.events_name_idx ATTACH PARTITION sluice.events_2026_02_environment_id_event_name_idx;


--
-- Name: events_2026_02_environment_id_user_id_inserted_at_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.events_user_idx ATTACH PARTITION sluice.events_2026_02_environment_id_user_id_inserted_at_idx;


--
-- Name: events_2026_02_pkey; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.events_pkey ATTACH PARTITION sluice.events_2026_02_pkey;


--
-- Name: events_2026_02_position_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.events_position_idx ATTACH PARTITION sluice.events_2026_02_position_idx;


--
-- Name: events_2026_03_environment_id_company_id_inserted_at_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.events_company_idx ATTACH PARTITION sluice.events_2026_03_environment_id_company_id_inserted_at_idx;


--
-- Name: events_2026_03_environment_id_event_name_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.events_name_idx ATTACH PARTITION sluice.events_2026_03_environment_id_event_name_idx;


--
-- Name: events_2026_03_environment_id_user_id_inserted_at_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.events_user_idx ATTACH PARTITION sluice.events_2026_03_environment_id_user_id_inserted_at_idx;


--
-- Name: events_2026_03_pkey; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.events_pkey ATTACH PARTITION sluice.events_2026_03_pkey;


--
-- Name: events_2026_03_position_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.events_position_idx ATTACH PARTITION sluice.events_2026_03_position_idx;


--
-- Name: events_2026_11_environment_id_company_id_inserted_at_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.events_company_idx ATTACH PARTITION sluice.events_2026_11_environment_id_company_id_inserted_at_idx;


--
-- Name: events_2026_11_environment_id_event_name_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.events_name_idx ATTACH PARTITION sluice.events_2026_11_environment_id_event_name_idx;


--
-- Name: events_2026_11_environment_id_user_id_inserted_at_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.events_user_idx ATTACH PARTITION sluice.events_2026_11_environment_id_user_id_inserted_at_idx;


--
-- Name: events_2026_11_pkey; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.events_pkey ATTACH PARTITION sluice.events_2026_11_pkey;


--
-- Name: events_2026_11_position_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.events_position_idx ATTACH PARTITION sluice.events_2026_11_position_idx;


--
-- Name: events_2026_12_environment_id_company_id_inserted_at_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.events_company_idx ATTACH PARTITION sluice.events_2026_12_environment_id_company_id_inserted_at_idx;


--
-- Name: events_2026_12_environment_id_event_name_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.events_name_idx ATTACH PARTITION sluice.events_2026_12_environment_id_event_name_idx;


--
-- Name: events_2026_12_environment_id_user_id_inserted_at_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.events_user_idx ATTACH PARTITION sluice.events_2026_12_environment_id_user_id_inserted_at_idx;


--
-- Name: events_2026_12_pkey; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.events_pkey ATTACH PARTITION sluice.events_2026_12_pkey;


--
-- Name: events_2026_12_position_idx; Type: INDEX ATTACH; Schema: sluice; Owner: -
--

ALTER INDEX sluice.events_position_idx ATTACH PARTITION sluice.events_2026_12_position_idx;


--
-- Name: companies companies_log_changes; Type: TRIGGER; Schema: sluice; Owner: -
--

CREATE TRIGGER companies_log_changes AFTER UPDATE ON sluice.companies REFERENCING OLD TABLE AS written_before NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION sluice.log_changed_companies();


--
-- Name: companies companies_log_removals; Type: TRIGGER; Schema: sluice; Owner: -
--

CREATE TRIGGER companies_log_removals AFTER DELETE ON sluice.companies REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION sluice.log_removed_companies();


--
-- Name: companies companies_note_change; Type: TRIGGER; Schema: sluice; Owner: -
--

CREATE TRIGGER companies_note_change BEFORE UPDATE ON sluice.companies FOR EACH ROW WHEN ((((new.digest = old.digest) OR (new."position" = old."position")) AND (new.metadata IS DISTINCT FROM old.metadata))) EXECUTE FUNCTION sluice.note_change();


--
-- Name: companies companies_note_key; Type: TRIGGER; Schema: sluice; Owner: -
--

CREATE TRIGGER companies_note_key BEFORE UPDATE ON sluice.companies FOR EACH ROW WHEN (((new.company_id <> old.company_id) OR (new.environment_id <> old.environment_id))) EXECUTE FUNCTION sluice.note_key();


--
-- Name: companies companies_note_truncation; Type: TRIGGER; Schema: sluice; Owner: -
--

CREATE TRIGGER companies_note_truncation AFTER TRUNCATE ON sluice.companies FOR EACH STATEMENT EXECUTE FUNCTION sluice.forget_changes();


--
-- Name: event_ids note_deletions; Type: TRIGGER; Schema: sluice; Owner: -
--

CREATE TRIGGER note_deletions AFTER DELETE ON sluice.event_ids REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION sluice.note_event_removals();


--
-- Name: events note_deletions; Type: TRIGGER; Schema: sluice; Owner: -
--

CREATE TRIGGER note_deletions AFTER DELETE ON sluice.events REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION sluice.note_event_removals();


--
-- Name: events_2026_01 note_deletions; Type: TRIGGER; Schema: sluice; Owner: -
--

CREATE TRIGGER note_deletions AFTER DELETE ON sluice.events_2026_01 REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION sluice.note_event_removals();


--
-- Name: events_2026_02 note_deletions; Type: TRIGGER; Schema: sluice; Owner: -
--

CREATE TRIGGER note_deletions AFTER DELETE ON sluice.events_2026_02 REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION sluice.note_event_removals();


--
-- Name: events_2026_03 note_deletions; Type: TRIGGER; Schema: sluice; Owner: -
--

CREATE TRIGGER note_deletions AFTER DELETE ON sluice.events_2026_03 REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION sluice.note_event_removals();


--
-- Name: events_2026_11 note_deletions; Type: TRIGGER; Schema: sluice; Owner: -
--

CREATE TRIGGER note_deletions AFTER DELETE ON sluice.events_2026_11 REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION sluice.note_event_removals();


--
-- Name: events_2026_12 note_deletions; Type: TRIGGER; Schema: sluice; Owner: -
--

CREATE TRIGGER note_deletions AFTER DELETE ON sluice.events_2026_12 REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION sluice.note_event_removals();


--
-- Name: event_ids note_truncation; Type: TRIGGER; Schema: sluice; Owner: -
--

CREATE TRIGGER note_truncation AFTER TRUNCATE ON sluice.event_ids FOR EACH STATEMENT EXECUTE FUNCTION sluice.note_event_removals();


--
-- Name: events note_truncation; Type: TRIGGER; Schema: sluice; Owner: -
--

CREATE TRIGGER note_truncation AFTER TRUNCATE ON sluice.events FOR EACH STATEMENT EXECUTE FUNCTION sluice.note_event_removals();


--
-- Name: events_2026_01 note_truncation; Type: TRIGGER; Schema: sluice; Owner: -
--

CREATE TRIGGER note_truncation AFTER TRUNCATE ON sluice.events_2026_01 FOR EACH STATEMENT EXECUTE FUNCTION sluice.note_event_removals();


--
-- Name: events_2026_02 note_truncation; Type: TRIGGER; Schema: sluice; Owner: -
--

CREATE TRIGGER note_truncation AFTER TRUNCATE ON sluice.events_2026_02 FOR EACH STATEMENT EXECUTE FUNCTION sluice.note_event_removals();


--
-- Name: events_2026_03 note_truncation; Type: TRIGGER; Schema: sluice; Owner: -
--

CREATE TRIGGER note_truncation AFTER TRUNCATE ON sluice.events_2026_03 FOR EACH STATEMENT EXECUTE FUNCTION sluice.note_event_removals();


--
-- Name: events_2026_11 note_truncation; Type: TRIGGER; Schema: sluice; Owner: -
--

CREATE TRIGGER note_truncation AFTER TRUNCATE ON sluice.events_2026_11 FOR EACH STATEMENT EXECUTE FUNCTION sluice.note_event_removals();


--
-- Name: events_2026_12 note_truncation; Type: TRIGGER; Schema: sluice; Owner: -
--

CREATE TRIGGER note_truncation AFTER TRUNCATE ON sluice.events_2026_12 FOR EACH STATEMENT EXECUTE FUNCTION sluice.note_event_removals();


--
-- Name: users users_log_changes; Type: TRIGGER; Schema: sluice; Owner: -
--

CREATE TRIGGER users_log_changes AFTER UPDATE ON sluice.users REFERENCING OLD TABLE AS written_before NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION sluice.log_changed_users();


--
-- Name: users users_log_removals; Type: TRIGGER; Schema: sluice; Owner: -
--

CREATE TRIGGER users_log_removals AFTER DELETE ON sluice.users REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION sluice.log_removed_users();


--
-- Name: users users_note_change; Type: TRIGGER; Schema: sluice; Owner: -
--

CREATE TRIGGER users_note_change BEFORE UPDATE ON sluice.users FOR EACH ROW WHEN ((((new.digest = old.digest) OR (new."position" = old."position")) AND ((new.metadata IS DISTINCT FROM old.metadata) OR (new.company_id IS DISTINCT FROM old.company_id)))) EXECUTE FUNCTION sluice.note_change();


--
-- Name: users users_note_key; Type: TRIGGER; Schema: sluice; Owner: -
--

CREATE TRIGGER users_note_key BEFORE UPDATE ON sluice.users FOR EACH ROW WHEN (((new.user_id <> old.user_id) OR (new.environment_id <> old.environment_id))) EXECUTE FUNCTION sluice.note_key();


--
-- Name: users users_note_truncation; Type: TRIGGER; Schema: sluice; Owner: -
--

CREATE TRIGGER users_note_truncation AFTER TRUNCATE ON sluice.users FOR EACH STATEMENT EXECUTE FUNCTION sluice.forget_changes();


--
-- Name: api_keys api_keys_environment_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.api_keys
    ADD CONSTRAINT api_keys_environment_fkey FOREIGN KEY (environment_id) REFERENCES sluice.environments(environment_id);


--
-- Name: console_links console_links_environment_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.console_links
    ADD CONSTRAINT console_links_environment_fkey FOREIGN KEY (environment_id) REFERENCES sluice.environments(environment_id);


--
-- Name: console_sessions console_sessions_environment_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.console_sessions
    ADD CONSTRAINT console_sessions_environment_fkey FOREIGN KEY (environment_id) REFERENCES sluice.environments(environment_id);


--
-- Name: console_sessions console_sessions_key_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.console_sessions
    ADD CONSTRAINT console_sessions_key_fkey FOREIGN KEY (key_id) REFERENCES sluice.api_keys(key_id) ON DELETE CASCADE;


--
-- Name: deletion_ids deletion_ids_deletion_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.deletion_ids
    ADD CONSTRAINT deletion_ids_deletion_fkey FOREIGN KEY (deletion_id) REFERENCES sluice.deletions(deletion_id) ON DELETE CASCADE;


--
-- Name: deletions deletions_environment_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.deletions
    ADD CONSTRAINT deletions_environment_fkey FOREIGN KEY (environment_id) REFERENCES sluice.environments(environment_id);


--
-- Name: environment_uses environment_uses_environment_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.environment_uses
    ADD CONSTRAINT environment_uses_environment_fkey FOREIGN KEY (environment_id) REFERENCES sluice.environments(environment_id);


--
-- Name: event_removals event_removals_environment_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.event_removals
    ADD CONSTRAINT event_removals_environment_fkey FOREIGN KEY (environment_id) REFERENCES sluice.environments(environment_id) ON DELETE CASCADE;


--
-- Name: event_retention event_retention_environment_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.event_retention
    ADD CONSTRAINT event_retention_environment_fkey FOREIGN KEY (environment_id) REFERENCES sluice.environments(environment_id);


--
-- Name: export_files export_files_export_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.export_files
    ADD CONSTRAINT export_files_export_fkey FOREIGN KEY (export_id) REFERENCES sluice.exports(export_id) ON DELETE CASCADE;


--
-- Name: exports exports_environment_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.exports
    ADD CONSTRAINT exports_environment_fkey FOREIGN KEY (environment_id) REFERENCES sluice.environments(environment_id);


--
-- Name: idempotency_keys idempotency_keys_environment_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.idempotency_keys
    ADD CONSTRAINT idempotency_keys_environment_fkey FOREIGN KEY (environment_id) REFERENCES sluice.environments(environment_id);


--
-- Name: inbox_files inbox_files_environment_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.inbox_files
    ADD CONSTRAINT inbox_files_environment_fkey FOREIGN KEY (environment_id) REFERENCES sluice.environments(environment_id);


--
-- Name: keyed_items keyed_items_environment_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.keyed_items
    ADD CONSTRAINT keyed_items_environment_fkey FOREIGN KEY (environment_id) REFERENCES sluice.environments(environment_id);


--
-- Name: lake_columns lake_columns_environment_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.lake_columns
    ADD CONSTRAINT lake_columns_environment_fkey FOREIGN KEY (environment_id) REFERENCES sluice.environments(environment_id);


--
-- Name: lake_files lake_files_environment_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.lake_files
    ADD CONSTRAINT lake_files_environment_fkey FOREIGN KEY (environment_id) REFERENCES sluice.environments(environment_id);


--
-- Name: lake_files lake_files_retirement_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.lake_files
    ADD CONSTRAINT lake_files_retirement_fkey FOREIGN KEY (retirement_id) REFERENCES sluice.event_retirements(retirement_id);


--
-- Name: lake_months lake_months_environment_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.lake_months
    ADD CONSTRAINT lake_months_environment_fkey FOREIGN KEY (environment_id) REFERENCES sluice.environments(environment_id);


--
-- Name: lake_tables lake_tables_environment_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.lake_tables
    ADD CONSTRAINT lake_tables_environment_fkey FOREIGN KEY (environment_id) REFERENCES sluice.environments(environment_id);


--
-- Name: load_chunk_keys load_chunk_keys_load_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_chunk_keys
    ADD CONSTRAINT load_chunk_keys_load_fkey FOREIGN KEY (load_id) REFERENCES sluice.loads(load_id) ON DELETE CASCADE;


--
-- Name: load_chunks load_chunks_load_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_chunks
    ADD CONSTRAINT load_chunks_load_fkey FOREIGN KEY (load_id) REFERENCES sluice.loads(load_id) ON DELETE CASCADE;


--
-- Name: load_event_replays load_event_replays_load_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_event_replays
    ADD CONSTRAINT load_event_replays_load_fkey FOREIGN KEY (load_id) REFERENCES sluice.loads(load_id) ON DELETE CASCADE;


--
-- Name: load_findings load_findings_load_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_findings
    ADD CONSTRAINT load_findings_load_fkey FOREIGN KEY (load_id) REFERENCES sluice.loads(load_id) ON DELETE CASCADE;


--
-- Name: load_guards load_guards_load_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_guards
    ADD CONSTRAINT load_guards_load_fkey FOREIGN KEY (load_id) REFERENCES sluice.loads(load_id) ON DELETE CASCADE;


--
-- Name: load_kinds load_kinds_load_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_kinds
    ADD CONSTRAINT load_kinds_load_fkey FOREIGN KEY (load_id) REFERENCES sluice.loads(load_id) ON DELETE CASCADE;


--
-- Name: load_lineage load_lineage_load_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_lineage
    ADD CONSTRAINT load_lineage_load_fkey FOREIGN KEY (load_id) REFERENCES sluice.loads(load_id) ON DELETE CASCADE;


--
-- Name: load_lineage load_lineage_mends_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_lineage
    ADD CONSTRAINT load_lineage_mends_fkey FOREIGN KEY (mends) REFERENCES sluice.loads(load_id) ON DELETE SET NULL;


--
-- Name: load_mends load_mends_load_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_mends
    ADD CONSTRAINT load_mends_load_fkey FOREIGN KEY (load_id) REFERENCES sluice.loads(load_id) ON DELETE CASCADE;


--
-- Name: load_mends load_mends_mended_by_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_mends
    ADD CONSTRAINT load_mends_mended_by_fkey FOREIGN KEY (mended_by) REFERENCES sluice.loads(load_id) ON DELETE CASCADE;


--
-- Name: load_mirrors load_mirrors_load_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_mirrors
    ADD CONSTRAINT load_mirrors_load_fkey FOREIGN KEY (load_id) REFERENCES sluice.loads(load_id) ON DELETE CASCADE;


--
-- Name: load_missing load_missing_load_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_missing
    ADD CONSTRAINT load_missing_load_fkey FOREIGN KEY (load_id) REFERENCES sluice.loads(load_id) ON DELETE CASCADE;


--
-- Name: load_plans load_plans_load_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_plans
    ADD CONSTRAINT load_plans_load_fkey FOREIGN KEY (load_id) REFERENCES sluice.loads(load_id) ON DELETE CASCADE;


--
-- Name: load_rejects load_rejects_load_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_rejects
    ADD CONSTRAINT load_rejects_load_fkey FOREIGN KEY (load_id) REFERENCES sluice.loads(load_id) ON DELETE CASCADE;


--
-- Name: load_replays load_replays_load_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_replays
    ADD CONSTRAINT load_replays_load_fkey FOREIGN KEY (load_id) REFERENCES sluice.loads(load_id) ON DELETE CASCADE;


--
-- Name: load_rules load_rules_load_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_rules
    ADD CONSTRAINT load_rules_load_fkey FOREIGN KEY (load_id) REFERENCES sluice.loads(load_id) ON DELETE CASCADE;


--
-- Name: load_rules load_rules_version_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_rules
    ADD CONSTRAINT load_rules_version_fkey FOREIGN KEY (environment_id, version) REFERENCES sluice.rules(environment_id, version);


--
-- Name: load_undos load_undos_load_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.load_undos
    ADD CONSTRAINT load_undos_load_fkey FOREIGN KEY (load_id) REFERENCES sluice.loads(load_id) ON DELETE CASCADE;


--
-- Name: loads loads_environment_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.loads
    ADD CONSTRAINT loads_environment_fkey FOREIGN KEY (environment_id) REFERENCES sluice.environments(environment_id);


--
-- Name: notification_attempts notification_attempts_delivery_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.notification_attempts
    ADD CONSTRAINT notification_attempts_delivery_fkey FOREIGN KEY (delivery_id) REFERENCES sluice.notification_deliveries(delivery_id) ON DELETE CASCADE;


--
-- Name: notification_deliveries notification_deliveries_event_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.notification_deliveries
    ADD CONSTRAINT notification_deliveries_event_fkey FOREIGN KEY (event_id) REFERENCES sluice.notification_events(event_id) ON DELETE CASCADE;


--
-- Name: notification_deliveries notification_deliveries_subscription_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.notification_deliveries
    ADD CONSTRAINT notification_deliveries_subscription_fkey FOREIGN KEY (subscription_id) REFERENCES sluice.notification_subscriptions(subscription_id);


--
-- Name: notification_events notification_events_environment_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.notification_events
    ADD CONSTRAINT notification_events_environment_fkey FOREIGN KEY (environment_id) REFERENCES sluice.environments(environment_id);


--
-- Name: notification_subscriptions notification_subscriptions_environment_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.notification_subscriptions
    ADD CONSTRAINT notification_subscriptions_environment_fkey FOREIGN KEY (environment_id) REFERENCES sluice.environments(environment_id);


--
-- Name: personal_loads personal_loads_load_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.personal_loads
    ADD CONSTRAINT personal_loads_load_fkey FOREIGN KEY (load_id) REFERENCES sluice.loads(load_id) ON DELETE CASCADE;


--
-- Name: planned_chunks planned_chunks_load_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.planned_chunks
    ADD CONSTRAINT planned_chunks_load_fkey FOREIGN KEY (load_id) REFERENCES sluice.loads(load_id) ON DELETE CASCADE;


--
-- Name: planned_events planned_events_load_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.planned_events
    ADD CONSTRAINT planned_events_load_fkey FOREIGN KEY (load_id) REFERENCES sluice.loads(load_id) ON DELETE CASCADE;


--
-- Name: properties properties_environment_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.properties
    ADD CONSTRAINT properties_environment_fkey FOREIGN KEY (environment_id) REFERENCES sluice.environments(environment_id);


--
-- Name: rules rules_environment_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.rules
    ADD CONSTRAINT rules_environment_fkey FOREIGN KEY (environment_id) REFERENCES sluice.environments(environment_id);


--
-- Name: schedule_memory schedule_memory_schedule_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.schedule_memory
    ADD CONSTRAINT schedule_memory_schedule_fkey FOREIGN KEY (environment_id, schedule_name) REFERENCES sluice.schedules(environment_id, schedule_name) ON DELETE CASCADE;


--
-- Name: schedule_run_items schedule_run_items_run_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.schedule_run_items
    ADD CONSTRAINT schedule_run_items_run_fkey FOREIGN KEY (run_id) REFERENCES sluice.schedule_runs(run_id) ON DELETE CASCADE;


--
-- Name: schedule_runs schedule_runs_schedule_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.schedule_runs
    ADD CONSTRAINT schedule_runs_schedule_fkey FOREIGN KEY (environment_id, schedule_name) REFERENCES sluice.schedules(environment_id, schedule_name);


--
-- Name: schedules schedules_environment_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.schedules
    ADD CONSTRAINT schedules_environment_fkey FOREIGN KEY (environment_id) REFERENCES sluice.environments(environment_id);


--
-- Name: segments segments_environment_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.segments
    ADD CONSTRAINT segments_environment_fkey FOREIGN KEY (environment_id) REFERENCES sluice.environments(environment_id);


--
-- Name: suppression_keys suppression_keys_environment_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.suppression_keys
    ADD CONSTRAINT suppression_keys_environment_fkey FOREIGN KEY (environment_id) REFERENCES sluice.environments(environment_id);


--
-- Name: suppressions suppressions_key_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.suppressions
    ADD CONSTRAINT suppressions_key_fkey FOREIGN KEY (environment_id) REFERENCES sluice.suppression_keys(environment_id);


--
-- Name: survey_modules survey_modules_survey_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.survey_modules
    ADD CONSTRAINT survey_modules_survey_fkey FOREIGN KEY (survey_id) REFERENCES sluice.surveys(survey_id) ON DELETE CASCADE;


--
-- Name: surveys surveys_environment_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.surveys
    ADD CONSTRAINT surveys_environment_fkey FOREIGN KEY (environment_id) REFERENCES sluice.environments(environment_id);


--
-- Name: titled_items titled_items_environment_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.titled_items
    ADD CONSTRAINT titled_items_environment_fkey FOREIGN KEY (environment_id) REFERENCES sluice.environments(environment_id);


--
-- Name: uploads uploads_environment_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.uploads
    ADD CONSTRAINT uploads_environment_fkey FOREIGN KEY (environment_id) REFERENCES sluice.environments(environment_id);


--
-- Name: uploads uploads_file_of_fkey; Type: FK CONSTRAINT; Schema: sluice; Owner: -
--

ALTER TABLE ONLY sluice.uploads
    ADD CONSTRAINT uploads_file_of_fkey FOREIGN KEY (file_of) REFERENCES sluice.loads(load_id) ON DELETE CASCADE;


--
-- PostgreSQL database dump complete
--


