-- How long events are kept, and what of them was removed.

create table sluice.event_retention (
  environment_id integer not null,
  key text collate "C" not null,
  days integer not null,
  constraint event_retention_pkey primary key (environment_id, key),
  constraint event_retention_environment_fkey foreign key (environment_id) references sluice.environments,
  constraint event_retention_key_check check (key <> ''),
  constraint event_retention_days_check check (days between 0 and 36500)
);
comment on table sluice.event_retention is 'The retention of events, from the definitions.';
comment on column sluice.event_retention.key is 'The name of an event; *: all that have no row of their own.';

create table sluice.lake_columns (
  environment_id integer not null,
  key text collate "C" not null,
  type text not null,
  constraint lake_columns_pkey primary key (environment_id, key),
  constraint lake_columns_environment_fkey foreign key (environment_id) references sluice.environments,
  constraint lake_columns_type_check check (type in ('string', 'numeric', 'boolean', 'date'))
);
comment on table sluice.lake_columns is 'Properties with columns of their own in the lake, from the definitions.';

create table sluice.event_retirements (
  retirement_id bigint generated always as identity,
  month date not null,
  table_name text,
  archives boolean not null,
  is_whole boolean not null,
  state text not null,
  attempt integer not null default 0,
  revision bigint not null default 0,
  events_removed bigint not null default 0,
  began_at timestamptz not null default now(),
  ended_at timestamptz,
  constraint event_retirements_pkey primary key (retirement_id),
  constraint event_retirements_state_check check (state in ('retired', 'archived', 'removed')),
  constraint event_retirements_table_until_removed check (state = 'removed' or table_name is not null),
  constraint event_retirements_ended_when_removed check ((ended_at is not null) = (state = 'removed'))
);
comment on table sluice.event_retirements is
  'Events that outlived their retention, a month at a time. Exports hold it locked in row share mode, so that no table is taken from under them.';
comment on column sluice.event_retirements.table_name is
  'The table of the events, no longer a partition of sluice.events; null if they were deleted in place.';
comment on column sluice.event_retirements.is_whole is 'The whole month was dropped; otherwise events of some names were taken out of it.';
comment on column sluice.event_retirements.state is
  'retired: in the table; archived: in files; removed: the table is gone.';
comment on column sluice.event_retirements.revision is
  'Raised by whoever changes what is in the table: an archive written of an earlier revision is not taken.';
create index event_retirements_open_idx on sluice.event_retirements (retirement_id) where state <> 'removed';

create table sluice.event_prunings (
  work text not null,
  ended_at timestamptz not null,
  error text,
  failing_since timestamptz,
  constraint event_prunings_pkey primary key (work),
  constraint event_prunings_work_check check (work in ('prune', 'append'))
);
comment on table sluice.event_prunings is 'The result of the latest pruning of events, and of the latest append to an archive.';
