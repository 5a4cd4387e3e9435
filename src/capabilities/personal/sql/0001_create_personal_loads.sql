create table sluice.personal_loads (
  load_id bigint not null,
  constraint personal_loads_pkey primary key (load_id),
  constraint personal_loads_load_fkey foreign key (load_id) references sluice.loads on delete cascade
);
comment on table sluice.personal_loads is
  'Loads whose records may hold personal values: of refused ones place and reason are kept, and the file goes when the load ends.';
