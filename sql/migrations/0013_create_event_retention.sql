-- How long events are kept, what of them was removed, and the files that they were archived in.

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
  'retired: in the table, which exports read if they are to be archived; archived: in event_archives; removed: the table is gone.';
comment on column sluice.event_retirements.revision is
  'Raised by whoever changes what is in the table: an archive written of an earlier revision is not taken.';
create index event_retirements_open_idx on sluice.event_retirements (retirement_id) where state <> 'removed';

create table sluice.event_archives (
  archive_id bigint generated always as identity,
  folder uuid not null,
  environment_id integer not null,
  month date not null,
  state text not null default 'writing',
  retirement_id bigint,
  file_ref text,
  row_count bigint,
  byte_count bigint,
  sha256 bytea,
  first_at timestamptz,
  last_at timestamptz,
  created_at timestamptz not null default now(),
  constraint event_archives_pkey primary key (archive_id),
  constraint event_archives_folder_key unique (folder),
  constraint event_archives_environment_fkey foreign key (environment_id) references sluice.environments,
  constraint event_archives_retirement_fkey foreign key (retirement_id) references sluice.event_retirements,
  constraint event_archives_state_check check (state in ('writing', 'stored', 'replaced')),
  constraint event_archives_sha256_check check (octet_length(sha256) = 32),
  constraint event_archives_stored_is_whole check (
    state = 'writing' or num_nonnulls(file_ref, row_count, byte_count, sha256, first_at, last_at) = 6
  )
);
comment on table sluice.event_archives is
  'Parquet files of archived events, each in a folder of its own in the file store, known before there is anything in it.';
comment on column sluice.event_archives.state is
  'stored: exports read it. writing, replaced: nobody reads it any more once those who do have ended; it is removed.';
create index event_archives_stored_idx on sluice.event_archives (environment_id, first_at) where state = 'stored';
create index event_archives_leftover_idx on sluice.event_archives (archive_id) where state <> 'stored';

create table sluice.event_prunings (
  singleton boolean not null default true,
  ended_at timestamptz not null,
  error text,
  failing_since timestamptz,
  constraint event_prunings_pkey primary key (singleton),
  constraint event_prunings_singleton_check check (singleton)
);
comment on table sluice.event_prunings is 'The result of the latest pruning of events; one row.';
