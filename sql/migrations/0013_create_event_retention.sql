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
  'retired: in the table; archived: in the lake; removed: the table is gone.';
comment on column sluice.event_retirements.revision is
  'Raised by whoever changes what is in the table: an archive written of an earlier revision is not taken.';
create index event_retirements_open_idx on sluice.event_retirements (retirement_id) where state <> 'removed';

create table sluice.lake_tables (
  environment_id integer not null,
  folder uuid not null,
  location text,
  version bigint not null default 0,
  fields jsonb not null default '{"schema":0,"last":0,"properties":[]}',
  metadata_ref text,
  changed_at timestamptz,
  constraint lake_tables_pkey primary key (environment_id),
  constraint lake_tables_folder_key unique (folder),
  constraint lake_tables_environment_fkey foreign key (environment_id) references sluice.environments
);
comment on table sluice.lake_tables is
  'Iceberg tables, one of the events of each environment. A commit holds its row locked.';
comment on column sluice.lake_tables.folder is 'Its files are below lake/<folder> of the file store, and it is the table''s UUID.';
comment on column sluice.lake_tables.location is
  'The address of the file store that the metadata names files by; if the store has moved, the next commit writes all metadata anew.';
comment on column sluice.lake_tables.version is 'The sequence number of the snapshot.';
comment on column sluice.lake_tables.fields is
  'The columns of properties: the version of the schema, the last id that was given, and the fields. No id is given twice.';

create table sluice.lake_files (
  file_id bigint generated always as identity,
  environment_id integer not null,
  kind text not null,
  month date,
  state text not null default 'writing',
  is_hot boolean not null default false,
  retirement_id bigint,
  file_ref text not null,
  version bigint,
  row_count bigint,
  file_count integer,
  byte_count bigint,
  sha256 bytea,
  first_at timestamptz,
  last_at timestamptz,
  filter bytea,
  created_at timestamptz not null default now(),
  constraint lake_files_pkey primary key (file_id),
  constraint lake_files_ref_key unique (file_ref),
  constraint lake_files_environment_fkey foreign key (environment_id) references sluice.environments,
  constraint lake_files_retirement_fkey foreign key (retirement_id) references sluice.event_retirements,
  constraint lake_files_kind_check check (kind in ('data', 'manifest', 'list', 'metadata')),
  constraint lake_files_state_check check (state in ('writing', 'stored', 'replaced')),
  constraint lake_files_sha256_check check (octet_length(sha256) = 32),
  constraint lake_files_stored_is_whole check (
    state <> 'stored'
    or kind <> 'data'
    or num_nonnulls(row_count, byte_count, sha256, month, first_at, last_at) = 6
  )
);
comment on table sluice.lake_files is
  'Files of the lake: Parquet files of events, and the manifests, lists and metadata that name them. Each is known before there is anything in it.';
comment on column sluice.lake_files.state is
  'stored: the snapshot names it. writing, replaced: nobody reads it any more once those who do have ended; it is removed.';
comment on column sluice.lake_files.is_hot is 'Its events are in sluice.events too, where exports read them.';
comment on column sluice.lake_files.version is 'Of manifests: the version of the table that has first named it.';
comment on column sluice.lake_files.filter is
  'A Bloom filter of the ids of users and companies in the file; null: it may hold anybody.';
-- Uncompressed, so that a few bits of a filter can be read alone.
alter table sluice.lake_files alter column filter set storage external;
create index lake_files_stored_idx on sluice.lake_files (environment_id, kind, first_at) where state = 'stored';
create index lake_files_leftover_idx on sluice.lake_files (file_id) where state <> 'stored';

create table sluice.lake_months (
  environment_id integer not null,
  month date not null,
  cursor text,
  revision bigint not null default 0,
  removals bigint not null default 0,
  appends integer not null default 0,
  written_removals bigint not null default 0,
  written_at timestamptz,
  constraint lake_months_pkey primary key (environment_id, month),
  constraint lake_months_environment_fkey foreign key (environment_id) references sluice.environments
);
comment on table sluice.lake_months is 'Months of events that the lake holds while they are in sluice.events.';
comment on column sluice.lake_months.cursor is 'The snapshot whose events the hot files hold; null: there are none yet.';
comment on column sluice.lake_months.revision is
  'Raised by every commit of its files, and by deletions of users and companies: files written of an earlier revision are not taken.';
comment on column sluice.lake_months.removals is 'How often others removed events: the files hold them until the whole month is written again.';
comment on column sluice.lake_months.appends is 'The files that were added since the whole month was written.';
comment on column sluice.lake_months.written_removals is 'The removals that were known when the whole month was written, at written_at.';

-- What a JDBC catalog of Iceberg reads. No engine can commit through views: sluice alone writes the tables.
create view sluice.iceberg_tables as
select
  'sluice'::varchar(255) as catalog_name,
  e.name::varchar(255) as table_namespace,
  'events'::varchar(255) as table_name,
  (t.location || '/' || t.metadata_ref)::varchar(1000) as metadata_location,
  null::varchar(1000) as previous_metadata_location,
  'TABLE'::varchar(5) as iceberg_type
from sluice.lake_tables t
join sluice.environments e using (environment_id)
where t.metadata_ref is not null;

create view sluice.iceberg_namespace_properties as
select distinct
  'sluice'::varchar(255) as catalog_name,
  table_namespace as namespace,
  'exists'::varchar(255) as property_key,
  'true'::varchar(1000) as property_value
from sluice.iceberg_tables;

create table sluice.event_prunings (
  work text not null,
  ended_at timestamptz not null,
  error text,
  failing_since timestamptz,
  constraint event_prunings_pkey primary key (work),
  constraint event_prunings_work_check check (work in ('prune', 'append'))
);
comment on table sluice.event_prunings is 'The result of the latest pruning of events, and of the latest append to the lake.';
