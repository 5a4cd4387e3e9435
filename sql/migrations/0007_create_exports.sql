-- Exports: what was asked for, how far it is, and the files that came of it.

create table sluice.exports (
  export_id bigint generated always as identity,
  job_id uuid not null,
  environment_id integer not null,
  status text not null default 'queued',
  request jsonb not null,
  format text not null,
  compression text not null,
  emails text[] not null default '{}',
  warnings jsonb not null default '[]',
  retention_days integer,
  request_id text,
  origin text,
  origin_name text,
  requested_at timestamptz not null default now(),
  started_at timestamptz,
  ended_at timestamptz,
  attempts integer not null default 0,
  rows_expected bigint,
  rows_written bigint not null default 0,
  bytes_written bigint not null default 0,
  snapshot_at timestamptz,
  cursor text,
  failure_code text,
  failure_message text,
  files_expired_at timestamptz,
  constraint exports_pkey primary key (export_id),
  constraint exports_job_id_key unique (job_id),
  constraint exports_environment_fkey foreign key (environment_id) references sluice.environments,
  constraint exports_status_check check (status in ('queued', 'processing', 'completed', 'failed', 'cancelled')),
  constraint exports_compression_check check (compression in ('gzip', 'none')),
  constraint exports_origin_check check (origin in ('api_key', 'schedule', 'inbox', 'command_line')),
  constraint exports_request_id_check check (length(request_id) <= 128),
  constraint exports_ended_at_set check (
    (ended_at is not null) = (status in ('completed', 'failed', 'cancelled'))
  ),
  constraint exports_failed_has_reason check ((failure_code is not null) = (status = 'failed'))
);
comment on table sluice.exports is 'One row per export; job_id is what the API shows.';
comment on column sluice.exports.request is 'The request, as src/domain/export.ts has it; never run as SQL.';
comment on column sluice.exports.cursor is 'The snapshot that the files show: sluice.current_cursor().';
comment on column sluice.exports.format is 'One of src/domain/export.ts, which alone lists them.';
comment on column sluice.exports.warnings is 'The ignored parts of the request: [{"message", "details"}].';
comment on column sluice.exports.retention_days is 'The days that its files are kept; null: as configured.';
create index exports_listing_idx on sluice.exports (environment_id, job_id desc);
create index exports_open_idx on sluice.exports (export_id) where status in ('queued', 'processing');
create index exports_leftovers_idx on sluice.exports (ended_at)
where status in ('failed', 'cancelled') and files_expired_at is null;

create table sluice.export_files (
  export_id bigint not null,
  filename text not null,
  dataset text not null,
  file_ref text not null,
  row_count bigint not null,
  byte_count bigint not null,
  sha256 bytea not null,
  constraint export_files_pkey primary key (export_id, filename),
  constraint export_files_export_fkey foreign key (export_id) references sluice.exports on delete cascade,
  constraint export_files_dataset_check check (dataset in ('users', 'companies', 'events', 'stream', 'manifest')),
  constraint export_files_sha256_check check (octet_length(sha256) = 32)
);
comment on table sluice.export_files is
  'The files of completed exports, written together with "completed": a file that is not here was never finished and cannot be fetched.';

create table sluice.signing_keys (
  purpose text not null,
  secret bytea not null,
  created_at timestamptz not null default now(),
  constraint signing_keys_pkey primary key (purpose),
  constraint signing_keys_secret_check check (octet_length(secret) = 32)
);
comment on table sluice.signing_keys is 'Secrets that sign links; made when first needed, and shared by all processes.';
