-- What all jobs share: the list that shows every one, the keys of requests that made them, the workers that do them.

-- The three have the same types in each column: only then does PostgreSQL search and sort each table by its indexes.
create view sluice.background_jobs as
select
  'load' as kind, load_id as id, job_id, environment_id, type, status, accepted_at, work_started_at as started_at, ended_at,
  lane_position, rows_read as done, total_rows as total, failure_code, failure_message,
  request_id, origin, origin_name, filename, file_size, sha256, attempts, dry_run,
  json_build_object(
    'read', rows_read, 'inserted', rows_inserted, 'updated', rows_updated, 'unchanged', rows_unchanged,
    'removed', rows_removed, 'superseded', rows_superseded, 'rejected', rows_rejected
  ) as counts
from sluice.loads
union all
select
  'export', export_id, job_id, environment_id, 'export', status, requested_at, started_at, ended_at,
  null, rows_written, case when ended_at is null then coalesce(rows_expected, rows_written) else rows_written end,
  failure_code, failure_message, request_id, origin, origin_name,
  'export-' || to_char(requested_at at time zone 'UTC', 'YYYY-MM-DD') || '.' || format, bytes_written, null, attempts, false, null
from sluice.exports
union all
select
  'deletion', deletion_id, job_id, environment_id, 'delete_' || entity, status, accepted_at, started_at, ended_at,
  lane_position, (ids_deleted + ids_not_found)::bigint, ids_requested::bigint, failure_code, failure_message,
  request_id, origin, origin_name,
  'delete-' || entity || '-' || to_char(accepted_at at time zone 'UTC', 'YYYY-MM-DD'), 0::bigint, null, attempts, false,
  json_build_object('requested', ids_requested, 'deleted', ids_deleted, 'not_found', ids_not_found)
from sluice.deletions;
comment on column sluice.background_jobs.total is 'Records of a load, expected rows of an export until it ends, ids of a deletion.';
comment on column sluice.background_jobs.lane_position is 'Loads and deletions run in this order; null for exports, which have no lane.';

create table sluice.idempotency_keys (
  environment_id integer not null,
  idempotency_key text not null,
  request_digest bytea not null,
  job_id uuid,
  answer json,
  created_at timestamptz not null default now(),
  constraint idempotency_keys_pkey primary key (environment_id, idempotency_key),
  constraint idempotency_keys_environment_fkey foreign key (environment_id) references sluice.environments
);
comment on column sluice.idempotency_keys.job_id is 'The job that the first request made or changed; null for records.';
comment on column sluice.idempotency_keys.answer is 'What the first request was answered, where that is more than it was done: of a batch.';
create index idempotency_keys_created_idx on sluice.idempotency_keys (created_at);

create table sluice.workers (
  worker_id uuid not null,
  host text not null,
  pid integer not null,
  started_at timestamptz not null default now(),
  seen_at timestamptz not null default now(),
  constraint workers_pkey primary key (worker_id)
);
comment on table sluice.workers is 'Sign of life of the worker processes.';

create table sluice.rates (
  environment_id integer not null,
  minutes integer not null,
  begins_at timestamptz not null,
  accepted bigint not null default 0,
  unchanged bigint not null default 0,
  rejected bigint not null default 0,
  constraint rates_pkey primary key (environment_id, minutes, begins_at)
);
comment on table sluice.rates is
  'Records that came in, by file or one by one, in steps of 1, 24 and 720 minutes, for plots of an hour, a day and a month. Each process adds every few seconds. Older rows go with the next.';
comment on column sluice.rates.unchanged is 'Records of files that brought nothing new; accepted: all others that were stored.';
