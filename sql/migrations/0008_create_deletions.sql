-- Deletions: whose data is to go, how far that is, and what became of each id. A deletion stands in the lane of its
-- environment, between the loads accepted before it and those accepted after.

create table sluice.deletions (
  deletion_id bigint generated always as identity,
  job_id uuid not null,
  environment_id integer not null,
  lane_position bigint not null default nextval('sluice.lane_positions'),
  entity text not null,
  status text not null default 'queued',
  purge_exports boolean not null default false,
  options jsonb not null default '{}',
  request_id text,
  origin text,
  origin_name text,
  ids_requested integer not null,
  ids_deleted integer not null default 0,
  ids_not_found integer not null default 0,
  events_removed bigint not null default 0,
  rejects_removed bigint not null default 0,
  files_removed bigint not null default 0,
  exports_removed bigint not null default 0,
  accepted_at timestamptz not null default clock_timestamp(),
  started_at timestamptz,
  ended_at timestamptz,
  attempts integer not null default 0,
  failure_code text,
  failure_message text,
  constraint deletions_pkey primary key (deletion_id),
  constraint deletions_job_id_key unique (job_id),
  constraint deletions_environment_fkey foreign key (environment_id) references sluice.environments,
  constraint deletions_entity_check check (entity in ('users', 'companies')),
  constraint deletions_status_check check (status in ('queued', 'processing', 'completed', 'failed')),
  constraint deletions_origin_check check (origin in ('api_key', 'schedule', 'inbox', 'command_line')),
  constraint deletions_request_id_check check (length(request_id) <= 128),
  constraint deletions_ended_at_set check ((ended_at is not null) = (status in ('completed', 'failed'))),
  constraint deletions_failed_has_reason check ((failure_code is not null) = (status = 'failed')),
  constraint deletions_completed_balances check (
    status <> 'completed' or ids_requested = ids_deleted + ids_not_found
  )
);
comment on table sluice.deletions is 'One row per deletion of users or companies; job_id is what the API shows.';
comment on column sluice.deletions.accepted_at is
  'Taken from the clock while the lane is locked: loads accepted before it are earlier.';
comment on column sluice.deletions.options is 'Options of capabilities, such as {"suppress": true}.';
comment on column sluice.deletions.events_removed is
  'Removed events of the users, or events from which the companies were taken.';
create index deletions_listing_idx on sluice.deletions (environment_id, job_id desc);
create index deletions_lane_idx on sluice.deletions (environment_id, lane_position)
where status in ('queued', 'processing');

create table sluice.deletion_ids (
  deletion_id bigint not null,
  position integer not null,
  id text collate "C" not null,
  outcome text,
  events bigint not null default 0,
  users bigint not null default 0,
  constraint deletion_ids_pkey primary key (deletion_id, position),
  constraint deletion_ids_id_key unique (deletion_id, id),
  constraint deletion_ids_deletion_fkey foreign key (deletion_id) references sluice.deletions on delete cascade,
  constraint deletion_ids_outcome_check check (outcome in ('deleted', 'not_found'))
);
comment on table sluice.deletion_ids is 'The ids of a deletion, as requested, with the outcome of each.';
create index deletion_ids_open_idx on sluice.deletion_ids (deletion_id, position) where outcome is null;
