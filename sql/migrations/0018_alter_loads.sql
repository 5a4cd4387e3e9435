-- What the last try to finish a load ran into. Chunks, exports and deletions have a column of that kind from the start.

alter table sluice.loads
  add column finish_error text;
comment on column sluice.loads.finish_error is 'What the last try to finish the load ran into; null if there was nothing.';
