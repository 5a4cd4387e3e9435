-- Schedules: what was due when, what came of it, and what each schedule remembers.

create table sluice.schedules (
  environment_id integer not null,
  schedule_name text not null,
  considered_until timestamptz not null,
  cursor text,
  paused_at timestamptz,
  definition jsonb,
  constraint schedules_pkey primary key (environment_id, schedule_name),
  constraint schedules_environment_fkey foreign key (environment_id) references sluice.environments
);
comment on table sluice.schedules is 'Schedules, and their progress.';
comment on column sluice.schedules.considered_until is
  'Due times up to here have their rows in schedule_runs, or need none.';
comment on column sluice.schedules.paused_at is 'The time since which the schedule is paused; null if it is not.';
comment on column sluice.schedules.definition is
  'The schedule, in the form of docs/schedules.md; null: it was deleted while a run of it was open.';
comment on column sluice.schedules.cursor is
  'The cursor of the last export that succeeded: "since_last_success" continues there.';

create table sluice.schedule_runs (
  run_id bigint generated always as identity,
  environment_id integer not null,
  schedule_name text not null,
  due_at timestamptz not null,
  cause text not null,
  status text not null default 'queued',
  definition jsonb not null,
  missed integer not null default 0,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  ended_at timestamptz,
  attempts integer not null default 0,
  last_error text,
  range_from timestamptz,
  range_to timestamptz,
  delivered_to text,
  reason_code text,
  reason text,
  constraint schedule_runs_pkey primary key (run_id),
  constraint schedule_runs_due_key unique (environment_id, schedule_name, due_at),
  constraint schedule_runs_schedule_fkey foreign key (environment_id, schedule_name) references sluice.schedules,
  constraint schedule_runs_cause_check check (cause in ('due', 'made_up', 'asked')),
  constraint schedule_runs_status_check check (
    status in (
      'queued', 'waiting',
      'completed', 'completed_with_rejects', 'unchanged', 'skipped', 'failed'
    )
  ),
  constraint schedule_runs_ended_at_set check (
    (ended_at is not null) = (status not in ('queued', 'waiting'))
  ),
  constraint schedule_runs_has_reason check (
    reason_code is not null or status not in ('skipped', 'failed')
  )
);
comment on table sluice.schedule_runs is
  'One row per schedule and due time: queued (a task of the kind run says who does it), waiting (its jobs are under way), ended.';
comment on column sluice.schedule_runs.last_error is 'The last error before the run waited for its jobs; until then its task has it.';
comment on column sluice.schedule_runs.definition is 'The definition when the row was made; secrets stand in it as ${env:…}.';
create unique index schedule_runs_one_at_a_time on sluice.schedule_runs (environment_id, schedule_name)
where status = 'waiting';
create index schedule_runs_open_idx on sluice.schedule_runs (due_at)
where status in ('queued', 'waiting');
create index schedule_runs_ended_idx on sluice.schedule_runs (ended_at) where ended_at is not null;

create table sluice.schedule_run_items (
  run_id bigint not null,
  item text not null,
  version text,
  job_id uuid,
  is_new boolean not null default false,
  error_code text,
  error_message text,
  constraint schedule_run_items_pkey primary key (run_id, item),
  constraint schedule_run_items_run_fkey foreign key (run_id) references sluice.schedule_runs on delete cascade,
  constraint schedule_run_items_job_or_error check ((job_id is null) = (error_code is not null))
);
comment on table sluice.schedule_run_items is
  'The items that a run took from its source, each with its job; written in the transaction that accepts the job, so that a repeated run takes nothing twice.';
comment on column sluice.schedule_run_items.is_new is 'False: the same bytes had been loaded before, by this job.';

create table sluice.schedule_memory (
  environment_id integer not null,
  schedule_name text not null,
  item text not null,
  version text not null,
  loaded_at timestamptz not null default now(),
  constraint schedule_memory_pkey primary key (environment_id, schedule_name, item),
  constraint schedule_memory_schedule_fkey foreign key (environment_id, schedule_name)
    references sluice.schedules on delete cascade
);
comment on table sluice.schedule_memory is
  'The version of each file, object or page that was loaded last: size and time, ETag, Last-Modified.';
