-- What persons and programs decided. Entries are only ever added, and removed when they are old enough.

create table sluice.audit_entries (
  entry_id bigint generated always as identity,
  environment_id integer,
  at timestamptz not null default now(),
  last_at timestamptz not null default now(),
  action text not null,
  outcome text not null,
  actor_kind text not null,
  actor_name text,
  session_id text,
  address text,
  thing text,
  details jsonb not null default '{}',
  hour timestamptz,
  count bigint not null default 1,
  constraint audit_entries_pkey primary key (entry_id),
  constraint audit_entries_environment_fkey foreign key (environment_id) references sluice.environments,
  constraint audit_entries_action_form check (action ~ '^[a-z_]+\.[a-z_]+$'),
  constraint audit_entries_outcome_known check (outcome in ('done', 'refused')),
  constraint audit_entries_texts_bounded check (
    greatest(length(actor_name), length(session_id), length(address), length(thing)) <= 300
    and length(details::text) <= 8000
  ),
  constraint audit_entries_count_positive check (count > 0 and (hour is not null or count = 1))
);
comment on table sluice.audit_entries is 'The audit log. It holds no ids of users, no values of records and no secrets.';
comment on column sluice.audit_entries.environment_id is 'Null: the entry concerns the whole service.';
comment on column sluice.audit_entries.hour is
  'The hour in which equal acts are counted in this entry. Null: an act that has an entry of its own.';

create unique index audit_entries_counted on sluice.audit_entries
  (hour, action, environment_id, actor_kind, actor_name, session_id, address, thing, details)
  nulls not distinct where hour is not null;
create index audit_entries_by_environment on sluice.audit_entries (environment_id, entry_id);
create index audit_entries_by_time on sluice.audit_entries (environment_id, last_at);
create index audit_entries_by_actor on sluice.audit_entries (actor_name, entry_id);
create index audit_entries_by_thing on sluice.audit_entries (thing, entry_id);

-- Lets only two changes pass: a count that grows, and the removal of an entry older than sluice.audit_days, at least a day.
create function sluice.keep_audit_entry() returns trigger
  language plpgsql
as $$
declare
  days integer := greatest(1, nullif(current_setting('sluice.audit_days', true), '')::integer);
begin
  if tg_op = 'DELETE' and nullif(current_setting('sluice.audit_days', true), '') is not null
    and old.at < now() - make_interval(days => days)
  then
    return old;
  end if;
  if tg_op = 'UPDATE' and old.hour is not null and new.count > old.count and new.last_at >= old.last_at
    and to_jsonb(new) - array['count', 'last_at'] = to_jsonb(old) - array['count', 'last_at']
  then
    return new;
  end if;
  raise exception 'an entry of the audit log cannot be changed or removed' using
    errcode = '23000',
    hint = 'AUDIT_DAYS says how long entries are kept.';
end
$$;

create trigger audit_entries_kept before update or delete on sluice.audit_entries
  for each row execute function sluice.keep_audit_entry();
create trigger audit_entries_never_truncated before truncate on sluice.audit_entries
  for each statement execute function sluice.keep_audit_entry();
-- Also in sessions whose session_replication_role is replica.
alter table sluice.audit_entries enable always trigger audit_entries_kept;
alter table sluice.audit_entries enable always trigger audit_entries_never_truncated;
