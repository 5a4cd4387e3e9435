-- Files that were sent to be inspected, as they were sent, so that a load need not send them again. Nothing but an inspection and loads
-- reads them; they go when they expire, and with every deletion of profiles.

create table sluice.uploads (
  upload_id uuid not null,
  environment_id integer not null,
  file_ref text not null,
  filename text,
  content_type text,
  is_gzip boolean not null,
  file_size bigint not null,
  sha256 text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  constraint uploads_pkey primary key (upload_id),
  constraint uploads_environment_fkey foreign key (environment_id) references sluice.environments
);
comment on table sluice.uploads is 'Files that were sent to be inspected.';
comment on column sluice.uploads.is_gzip is 'The request said Content-Encoding: gzip.';
comment on column sluice.uploads.sha256 is 'Hex, of the bytes as sent.';
create index uploads_expiry_idx on sluice.uploads (expires_at);
create index uploads_environment_idx on sluice.uploads (environment_id);
