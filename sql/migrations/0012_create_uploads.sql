-- Files that were sent before they are loaded, byte for byte, so that a load need not send them again. They go when they expire, and
-- with every deletion of profiles.

create table sluice.uploads (
  upload_id uuid not null,
  environment_id integer not null,
  filename text,
  content_type text,
  is_gzip boolean not null,
  file_size bigint not null,
  sha256 text not null,
  file_ref text,
  file_of bigint,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  constraint uploads_pkey primary key (upload_id),
  constraint uploads_environment_fkey foreign key (environment_id) references sluice.environments,
  constraint uploads_file_of_fkey foreign key (file_of) references sluice.loads on delete cascade,
  constraint uploads_have_one_file check ((file_ref is null) <> (file_of is null))
);
comment on table sluice.uploads is 'Files that were sent before they are loaded.';
comment on column sluice.uploads.sha256 is 'Hex, of the bytes as sent.';
comment on column sluice.uploads.file_of is
  'The load whose stored file it is: the upload goes with that file. Null if the file was sent.';
comment on column sluice.uploads.expires_at is '-infinity: it is being removed.';
create index uploads_expiry_idx on sluice.uploads (expires_at);
create index uploads_environment_idx on sluice.uploads (environment_id, created_at);
create index uploads_file_of_idx on sluice.uploads (file_of) where file_of is not null;
