-- The tables of the lake: its files, and the months of events that it holds.

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

-- A deletion takes its events out of the files by itself; other removals make the files of a month stale.
create or replace function sluice.event_months_changed(environments integer[], months date[], erases boolean) returns void
  language plpgsql
  set search_path = pg_catalog
  as $$
begin
  update sluice.lake_months m
  set revision = revision + erases::int, removals = removals + (not erases)::int
  from unnest(environments, months) c (environment_id, month)
  where m.environment_id = c.environment_id and m.month = c.month;
end;
$$;
