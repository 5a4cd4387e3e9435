-- The inbox: which files were taken from it, in which order, and what became of each.

create table sluice.inbox_files (
  file_id uuid not null,
  inbox_id uuid not null,
  environment_id integer not null,
  arrival bigint generated always as identity,
  folder text not null,
  name text not null,
  inode numeric(20) not null,
  size bigint not null,
  modified_ns numeric(20) not null,
  options jsonb not null,
  state text not null,
  taken_at timestamptz not null default now(),
  sha256 bytea,
  job_id uuid,
  is_duplicate boolean not null default false,
  reasons jsonb not null default '[]',
  outcome text,
  placed_as text,
  concluded_at timestamptz,
  constraint inbox_files_pkey primary key (file_id),
  constraint inbox_files_environment_fkey foreign key (environment_id) references sluice.environments,
  constraint inbox_files_folder_check check (folder in ('', 'users', 'companies')),
  constraint inbox_files_name_check check (name <> '' and position('/' in name) = 0),
  constraint inbox_files_state_check check (state in ('loading', 'refused', 'concluded')),
  constraint inbox_files_outcome_check check (outcome in ('done', 'failed')),
  constraint inbox_files_sha256_check check (octet_length(sha256) = 32),
  constraint inbox_files_loading_has_job check (state <> 'loading' or (job_id is not null and sha256 is not null)),
  constraint inbox_files_outcome_has_place check ((outcome is null) = (placed_as is null)),
  constraint inbox_files_concluded_at_set check ((concluded_at is not null) = (state = 'concluded')),
  constraint inbox_files_concluded_has_outcome check (state <> 'concluded' or outcome is not null)
);
comment on table sluice.inbox_files is 'One row per file taken from an inbox.';
comment on column sluice.inbox_files.inbox_id is 'The id in a file of the inbox directory, the same on every machine.';
comment on column sluice.inbox_files.folder is 'The folder that the file lay in; empty: the environment''s own.';
comment on column sluice.inbox_files.modified_ns is 'Nanoseconds since 1970; with inode and size it tells whether the file is still the same.';
comment on column sluice.inbox_files.options is 'The options of its mapping.yaml when the file was taken.';
comment on column sluice.inbox_files.is_duplicate is 'job_id loaded the same bytes before; this file was not loaded again.';
comment on column sluice.inbox_files.placed_as is 'The day and name below done or failed, fixed before the file is moved.';
-- Two processes that look at the same file write one row.
create unique index inbox_files_taken_key
on sluice.inbox_files (inbox_id, environment_id, folder, name, inode, size, modified_ns)
where state <> 'concluded';
create index inbox_files_open_idx on sluice.inbox_files (inbox_id, environment_id, arrival) where state <> 'concluded';
create index inbox_files_concluded_idx on sluice.inbox_files (inbox_id, concluded_at) where state = 'concluded';
create unique index inbox_files_place_key on sluice.inbox_files (inbox_id, environment_id, outcome, placed_as)
where placed_as is not null;
