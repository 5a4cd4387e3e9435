-- A received file has no load for a moment. Who is killed in that moment leaves a file that nothing else names.

create table sluice.received_files (
  file_ref text not null,
  received_at timestamptz not null default now(),
  condemned_at timestamptz,
  constraint received_files_pkey primary key (file_ref)
);
comment on table sluice.received_files is
  'Files between being complete in the store and belonging to a load: written before the first, deleted with the second.';
comment on column sluice.received_files.condemned_at is
  'Nobody came for it: it is being removed, and no load may take it any more.';
create index received_files_age_idx on sluice.received_files (received_at);
