-- Files that were sent to be inspected, as they were sent, so that a load need not send them again. Nothing but an inspection and loads
-- reads them; they go when they expire, and with every deletion of profiles. One may come in several requests: what a request brings
-- is stored in parts, each of which counts from the moment it is in the ledger.

create table sluice.uploads (
  upload_id uuid not null,
  environment_id integer not null,
  filename text,
  content_type text,
  is_gzip boolean not null,
  file_size bigint not null,
  received_bytes bigint not null default 0,
  attempt integer not null default 0,
  sha256 text,
  file_of bigint,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  constraint uploads_pkey primary key (upload_id),
  constraint uploads_environment_fkey foreign key (environment_id) references sluice.environments,
  constraint uploads_file_of_fkey foreign key (file_of) references sluice.loads on delete cascade,
  constraint uploads_received_within_file check (received_bytes between 0 and file_size),
  constraint uploads_hashed_when_complete check (sha256 is null or received_bytes = file_size),
  constraint uploads_file_of_load_is_whole check (file_of is null or sha256 is not null)
);
comment on table sluice.uploads is 'Files that were sent to be inspected.';
comment on column sluice.uploads.attempt is 'The number of requests that appended; only the last may still add a part.';
comment on column sluice.uploads.sha256 is 'Hex, of the bytes as sent; null until all have come and were read.';
comment on column sluice.uploads.file_of is
  'The load whose stored file it is: the upload has no parts, and goes with that file. Null if the file was sent.';
comment on column sluice.uploads.expires_at is '-infinity: it is being removed, and nothing is added any more.';
create index uploads_expiry_idx on sluice.uploads (expires_at);
create index uploads_environment_idx on sluice.uploads (environment_id, created_at);
create index uploads_file_of_idx on sluice.uploads (file_of) where file_of is not null;

create table sluice.upload_parts (
  upload_id uuid not null,
  byte_start bigint not null,
  byte_end bigint not null,
  file_ref text not null,
  constraint upload_parts_pkey primary key (upload_id, byte_start),
  constraint upload_parts_upload_fkey foreign key (upload_id) references sluice.uploads on delete cascade,
  constraint upload_parts_not_empty check (byte_start >= 0 and byte_end > byte_start)
);
comment on table sluice.upload_parts is 'The received parts of an upload, without gaps.';
