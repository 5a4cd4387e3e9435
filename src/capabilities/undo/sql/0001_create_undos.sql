-- Loads that take back what other loads wrote.

create table sluice.load_undos (
  load_id bigint not null,
  undoes bigint[] not null,
  constraint load_undos_pkey primary key (load_id),
  constraint load_undos_load_fkey foreign key (load_id) references sluice.loads on delete cascade
);
comment on table sluice.load_undos is
  'The loads that an undo undoes; some may have been pruned. Its file is written when its turn in the lane comes.';
create index load_undos_undoes_idx on sluice.load_undos using gin (undoes);
