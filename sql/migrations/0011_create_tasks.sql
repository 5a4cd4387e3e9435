-- Tasks: the background work that is to be done or under way, of every kind. A task that is done is deleted by the
-- transaction that wrote what it did, so the table holds live work only and stays small.

create table sluice.tasks (
  task_id bigint generated always as identity,
  kind text not null,
  subject_id bigint not null,
  part integer not null default 0,
  environment_id integer not null,
  group_id uuid,
  job_id uuid,
  request_id text,
  attempt integer not null default 0,
  lease_until timestamptz,
  claimed_at timestamptz,
  worker text,
  waiting_since timestamptz not null default now(),
  not_before timestamptz not null default now(),
  notified_at timestamptz,
  failures integer not null default 0,
  losses integer not null default 0,
  last_error text,
  constraint tasks_pkey primary key (task_id),
  constraint tasks_subject_key unique (kind, subject_id, part),
  constraint tasks_leased_has_attempt check (lease_until is null or attempt > 0),
  constraint tasks_counts_check check (attempt >= 0 and failures >= 0 and losses >= 0)
);
comment on table sluice.tasks is 'Background work that waits or is under way. What is done is not here.';
comment on column sluice.tasks.environment_id is 'The environment whose turn it takes; 0: the whole system.';
comment on column sluice.tasks.group_id is
  'The group, such as a receiver of messages, if the kind has a limit for each group.';
comment on column sluice.tasks.job_id is 'The job, for the log, like request_id; null if the subject is no job.';
comment on column sluice.tasks.attempt is 'Counts claims. Every write of a claim is fenced by it.';
comment on column sluice.tasks.lease_until is 'The time until which a worker owns it, by this clock; null while it waits.';
comment on column sluice.tasks.not_before is 'The earliest time of a claim; after an error, a while later.';
comment on column sluice.tasks.notified_at is 'The time of its last notice to the queue; null if there was none since it was given back.';
comment on column sluice.tasks.failures is 'Errors that count since it last made progress.';
comment on column sluice.tasks.losses is 'Workers that vanished with it since it last made progress.';

-- Whoever looks for the next task reads one entry of each kind and environment, however many wait.
create index tasks_waiting_idx on sluice.tasks (kind, environment_id, task_id) where lease_until is null;
create index tasks_running_idx on sluice.tasks (kind, environment_id) where lease_until is not null;
-- How many of a group are under way is asked for each task that waits: an index of all, which are many, would be read each time.
create index tasks_group_idx on sluice.tasks (kind, group_id) where group_id is not null and lease_until is not null;
