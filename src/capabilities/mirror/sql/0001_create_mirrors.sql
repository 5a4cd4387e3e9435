-- Loads that remove the profiles that their file does not hold.

create table sluice.load_mirrors (
  load_id bigint not null,
  profiles bigint not null,
  missing bigint not null,
  allowed bigint not null,
  done bigint not null default 0,
  kept_because text,
  constraint load_mirrors_pkey primary key (load_id),
  constraint load_mirrors_load_fkey foreign key (load_id) references sluice.loads on delete cascade,
  constraint load_mirrors_kept_removes_none check (kept_because is null or done = 0)
);
comment on table sluice.load_mirrors is
  'The decision about the profiles that the file of a mirror does not hold. No row until it is made.';
comment on column sluice.load_mirrors.done is 'Profiles removed so far.';

create table sluice.load_missing (
  load_id bigint not null,
  key text collate "C" not null,
  constraint load_missing_pkey primary key (load_id, key),
  constraint load_missing_load_fkey foreign key (load_id) references sluice.loads on delete cascade
);
comment on table sluice.load_missing is
  'Profiles that the file of a mirror does not hold, until they are removed.';
