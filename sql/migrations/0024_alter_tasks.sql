-- What fair turns and lost workers need: who is under way, when a task that failed is due again, and how often the finish
-- of a load lost its worker.

alter table sluice.loads
  add column finish_losses integer not null default 0,
  add column finish_due_at timestamptz not null default now();
comment on column sluice.loads.finish_due_at is 'Not to be finished before: after an error, a while later.';

alter table sluice.load_chunks add column due_at timestamptz not null default now();
comment on column sluice.load_chunks.due_at is 'The queue is not to be told of it before: after an error, a while later.';

alter table sluice.deletions add column due_at timestamptz not null default now();
comment on column sluice.deletions.due_at is 'Not to be taken before: after an error, a while later.';

alter table sluice.exports add column due_at timestamptz not null default now();
comment on column sluice.exports.due_at is 'Not to be taken before: after an error, a while later.';

-- Whoever looks for the next task looks at these first, however many loads wait.
create index loads_processing_idx on sluice.loads (load_id) where status = 'processing';
create index load_chunks_running_idx on sluice.load_chunks (load_id) where state = 'running';
