-- The ledger: what was accepted, what is done, what was refused. The queue only says that work is due.

create sequence sluice.lane_positions as bigint;

create table sluice.loads (
  load_id bigint generated always as identity,
  job_id uuid not null,
  environment_id integer not null,
  lane_position bigint not null default nextval('sluice.lane_positions'),
  type text not null,
  entity text not null,
  status text not null default 'queued',
  filename text not null,
  file_size bigint not null,
  sha256 bytea not null,
  file_ref text,
  header jsonb,
  column_map jsonb not null default '{}',
  preset text,
  source_options jsonb not null default '{}',
  read_as jsonb,
  total_rows bigint not null,
  pass text not null default 'load',
  dry_run boolean not null generated always as (pass <> 'load') stored,
  begins_anew boolean not null default false,
  request_id text,
  origin text,
  origin_name text,
  accepted_at timestamptz not null default now(),
  file_cursor pg_snapshot,
  started_at timestamptz,
  work_started_at timestamptz,
  ended_at timestamptz,
  failure_code text,
  failure_message text,
  attempts integer not null default 1,
  chunk_count integer not null,
  chunks_done integer not null default 0,
  rows_read bigint not null default 0,
  rows_inserted bigint not null default 0,
  rows_updated bigint not null default 0,
  rows_unchanged bigint not null default 0,
  rows_removed bigint not null default 0,
  rows_superseded bigint not null default 0,
  rows_rejected bigint not null default 0,
  dropped_properties bigint not null default 0,
  own_file boolean not null default false,
  repeats_resolved_at timestamptz,
  event_removals bigint,
  has_event_types boolean not null default false,
  constraint loads_pkey primary key (load_id),
  constraint loads_job_id_key unique (job_id),
  constraint loads_environment_fkey foreign key (environment_id) references sluice.environments,
  constraint loads_type_check check (type in ('import', 'bulk_identify_users', 'bulk_identify_companies', 'undo')),
  constraint loads_entity_check check (entity in ('users', 'companies', 'auto')),
  constraint loads_preset_check check (preset <> ''),
  constraint loads_status_check check (status in ('queued', 'processing', 'held', 'completed', 'failed', 'cancelled')),
  constraint loads_pass_check check (pass in ('load', 'dry_run', 'plan', 'guard', 'validate', 'apply')),
  constraint loads_sha256_check check (octet_length(sha256) = 32),
  constraint loads_origin_check check (origin in ('api_key', 'schedule', 'inbox', 'command_line')),
  constraint loads_request_id_check check (length(request_id) <= 128),
  constraint loads_ended_at_set check (
    (ended_at is not null) = (status in ('completed', 'failed', 'cancelled'))
  ),
  constraint loads_failed_has_reason check ((failure_code is not null) = (status = 'failed')),
  constraint loads_chunks_done_check check (chunks_done between 0 and chunk_count),
  constraint loads_completed_balances check (
    status <> 'completed'
    or (
      rows_read = total_rows
      and chunks_done = chunk_count
      and rows_read = rows_inserted + rows_updated + rows_unchanged + rows_removed + rows_superseded + rows_rejected
    )
  )
);
comment on table sluice.loads is 'One row per accepted import or bulk identify; job_id is what the API shows.';
comment on column sluice.loads.lane_position is 'Loads and deletions of an environment take effect in this order.';
comment on column sluice.loads.header is 'The columns of a CSV; null: the file is NDJSON.';
comment on column sluice.loads.file_ref is 'The stored file (decompressed, UTF-8); null once it has expired.';
comment on column sluice.loads.pass is
  'The work of its chunks. load: they write; dry_run, plan: they only look; guard, validate: they check a guard, then load; apply: the plan is to be loaded.';
comment on column sluice.loads.event_removals is 'The number in sluice.event_removals when the load was first started.';
comment on column sluice.loads.dry_run is 'The pass writes neither profiles nor events.';
comment on column sluice.loads.begins_anew is 'The results of the last pass are deleted before the chunks start.';
comment on column sluice.loads.file_cursor is
  'What had been committed when the file was accepted, of a stored file for the first time: what was written since is newer than the file.';
comment on column sluice.loads.work_started_at is
  'The start of the current or last work: of the pass, or of a retry that continues it; null while the load waits.';
comment on column sluice.loads.preset is 'The product whose records the file holds; null for records of our own form.';
comment on column sluice.loads.dropped_properties is 'Properties of JSON without a name; their records were loaded without them.';
comment on column sluice.loads.own_file is 'Its file is written when its turn in the lane comes, and all of its records may be refused.';
comment on column sluice.loads.has_event_types is
  'Some record has an event_type: the counts are shown by kind.';
create index loads_listing_idx on sluice.loads (environment_id, job_id desc);
create index loads_lane_idx on sluice.loads (environment_id, lane_position) where status in ('queued', 'processing');
create index loads_held_idx on sluice.loads (environment_id) where status = 'held';
create index loads_duplicate_idx on sluice.loads (environment_id, sha256)
where status in ('queued', 'processing', 'held', 'completed');
create index loads_rejects_idx on sluice.loads (environment_id, job_id)
where status = 'completed' and rows_rejected > 0 and not dry_run;

-- Facts of loads that only some have. Each table has at most one row for a load.

create table sluice.load_lineage (
  load_id bigint not null,
  duplicate_of uuid,
  file_of uuid,
  file_at timestamptz,
  mends bigint,
  taken_back_by bigint,
  constraint load_lineage_pkey primary key (load_id),
  constraint load_lineage_load_fkey foreign key (load_id) references sluice.loads on delete cascade,
  constraint load_lineage_mends_fkey foreign key (mends) references sluice.loads on delete set null
);
comment on table sluice.load_lineage is 'What a load has to do with other loads.';
comment on column sluice.load_lineage.duplicate_of is 'The earlier job with the same bytes.';
comment on column sluice.load_lineage.file_of is 'The job whose stored file was loaded again; null if the file was sent.';
comment on column sluice.load_lineage.file_at is 'The time at which the file of file_of was accepted for the first time.';
comment on column sluice.load_lineage.mends is 'The load whose refused records its file holds, corrected.';
comment on column sluice.load_lineage.taken_back_by is 'The load that took back what this one wrote; of several, the one that began last.';

create table sluice.load_guards (
  load_id bigint not null,
  max_errors bigint,
  max_changed bigint,
  max_removed_values bigint,
  guard jsonb,
  held_at timestamptz,
  held_for jsonb,
  decided_at timestamptz,
  decided_by jsonb,
  constraint load_guards_pkey primary key (load_id),
  constraint load_guards_load_fkey foreign key (load_id) references sluice.loads on delete cascade,
  constraint load_guards_held_is_explained check ((held_for is not null) = (held_at is not null)),
  constraint load_guards_held_has_guard check (held_at is null or guard is not null),
  constraint load_guards_decided_was_held check (decided_at is null or held_at is not null)
);
comment on table sluice.load_guards is 'The limits that a load must keep before it writes, and the decision if it was held.';
comment on column sluice.load_guards.guard is 'The figures expected of the file; null: any. If the file differs, the load is held.';
comment on column sluice.load_guards.held_for is 'The figures of the file that were not as expected when the load was held last.';
comment on column sluice.load_guards.decided_by is 'The origin of the request that released or discarded the held load.';

create table sluice.load_plans (
  load_id bigint not null,
  planned_at timestamptz not null,
  plan_cursor pg_snapshot not null,
  plan jsonb,
  plan_ended_at timestamptz,
  on_drift text,
  applied_at timestamptz,
  constraint load_plans_pkey primary key (load_id),
  constraint load_plans_load_fkey foreign key (load_id) references sluice.loads on delete cascade,
  constraint load_plans_has_time check ((plan is not null) = (plan_ended_at is not null)),
  constraint load_plans_on_drift_check check (on_drift in ('refuse', 'proceed')),
  constraint load_plans_applied_has_plan check (applied_at is null or plan is not null)
);
comment on table sluice.load_plans is 'The latest plan of a load, from the moment it begins.';
comment on column sluice.load_plans.plan_cursor is 'What had been committed when the plan began: it may not have seen what came after.';
comment on column sluice.load_plans.plan is 'The summary; null until all chunks are planned.';

create table sluice.load_kinds (
  load_id bigint not null,
  kind text not null,
  rows_inserted bigint not null default 0,
  rows_updated bigint not null default 0,
  rows_unchanged bigint not null default 0,
  rows_removed bigint not null default 0,
  rows_superseded bigint not null default 0,
  rows_rejected bigint not null default 0,
  constraint load_kinds_pkey primary key (load_id, kind),
  constraint load_kinds_load_fkey foreign key (load_id) references sluice.loads on delete cascade,
  constraint load_kinds_kind_check check (
    kind in (
      'identify_user', 'identify_company', 'track', 'page_view', 'interaction', 'track_feature', 'session_start', 'unknown'
    )
  ),
  constraint load_kinds_counts_check check (
    least(rows_inserted, rows_updated, rows_unchanged, rows_removed, rows_superseded, rows_rejected) >= 0
  )
);
comment on table sluice.load_kinds is
  'The counts of a load by kind of record, where its file may hold several. Their sums are the counts in sluice.loads.';
comment on column sluice.load_kinds.kind is 'unknown: the record was refused before its kind could be told.';

create table sluice.load_chunks (
  load_id bigint not null,
  chunk_no integer not null,
  byte_start bigint not null,
  byte_end bigint not null,
  first_row bigint not null,
  first_line bigint not null,
  row_count integer not null,
  oversized boolean not null,
  rows_inserted integer,
  rows_updated integer,
  rows_unchanged integer,
  rows_removed integer,
  rows_superseded integer,
  rows_rejected integer,
  done_at timestamptz,
  worker text,
  attempts integer not null default 0,
  losses integer not null default 0,
  positions bigint[] not null default '{}',
  constraint load_chunks_pkey primary key (load_id, chunk_no),
  constraint load_chunks_load_fkey foreign key (load_id) references sluice.loads on delete cascade,
  constraint load_chunks_range_check check (byte_start >= 0 and byte_end > byte_start),
  constraint load_chunks_done_balances check (
    done_at is null
    or (row_count = rows_inserted + rows_updated + rows_unchanged + rows_removed + rows_superseded + rows_rejected) is true
  )
);
comment on table sluice.load_chunks is
  'A chunk is a byte range of a load''s file: the unit of work, retry and parallelism. Its worker stands in sluice.tasks.';
comment on column sluice.load_chunks.attempts is 'The number of the attempt that did it; 0 until then.';
comment on column sluice.load_chunks.positions is 'The transactions that wrote its rows: sluice.events.position.';
comment on column sluice.load_chunks.losses is 'The attempts that lost their worker.';
create index load_chunks_open_idx on sluice.load_chunks (load_id, chunk_no) where done_at is null;

-- Marks: hashes of keys with two low bits, which say what a chunk made of the key.

create function sluice.key_hash(key text) returns bigint
  language sql immutable parallel safe
  return hashtextextended(key, 0) & -4;
create function sluice.mark(hash bigint, is_new boolean, is_counted boolean) returns bigint
  language sql immutable parallel safe
  return hash | is_new::int | 2 * (not is_counted)::int;
create function sluice.hash_of(mark bigint) returns bigint
  language sql immutable parallel safe
  return mark & -4;
comment on function sluice.hash_of(bigint) is 'The hash of the key.';
create function sluice.is_new(mark bigint) returns boolean
  language sql immutable parallel safe
  return mark & 1 = 1;
comment on function sluice.is_new(bigint) is 'The chunk made the row. Of events: the id is the caller''s.';
create function sluice.is_counted(mark bigint) returns boolean
  language sql immutable parallel safe
  return mark & 2 = 0;
comment on function sluice.is_counted(bigint) is 'The key is that of a record, and not only named by one.';

create table sluice.load_chunk_keys (
  load_id bigint not null,
  chunk_no integer not null,
  entity text not null,
  written bigint[] not null default '{}',
  unchanged bigint[] not null default '{}',
  repeated bigint[] not null default '{}',
  constraint load_chunk_keys_pkey primary key (load_id, chunk_no, entity),
  constraint load_chunk_keys_load_fkey foreign key (load_id) references sluice.loads on delete cascade,
  constraint load_chunk_keys_entity_check check (entity in ('users', 'companies', 'events'))
);
comment on table sluice.load_chunk_keys is
  'Marks of the keys that each chunk met, kept while the load runs, to find keys that stand in several chunks.';
comment on column sluice.load_chunk_keys.written is
  'Keys this chunk was the first of its load to write. Of events: one for each row.';
comment on column sluice.load_chunk_keys.unchanged is
  'Keys whose row already held all this chunk brings. Of events: ids of the caller that were there.';
comment on column sluice.load_chunk_keys.repeated is 'Keys that another chunk of the load had written before.';

create table sluice.load_replays (
  load_id bigint not null,
  entity text not null,
  key_hash bigint not null,
  constraint load_replays_pkey primary key (load_id, entity, key_hash),
  constraint load_replays_load_fkey foreign key (load_id) references sluice.loads on delete cascade,
  constraint load_replays_entity_check check (entity in ('users', 'companies'))
);
comment on table sluice.load_replays is
  'Keys that were written out of file order, to be replayed from the file before the load completes.';

create table sluice.load_event_replays (
  load_id bigint not null,
  chunk_no integer not null,
  key_hash bigint not null,
  rows_before bigint not null,
  is_written boolean not null,
  constraint load_event_replays_pkey primary key (load_id, chunk_no, key_hash),
  constraint load_event_replays_load_fkey foreign key (load_id) references sluice.loads on delete cascade,
  constraint load_event_replays_rows_before_check check (rows_before >= 0)
);
comment on table sluice.load_event_replays is
  'Events that stand in several chunks and are to be corrected before the load completes. A chunk''s rows go when it is done.';

create table sluice.load_rejects (
  load_id bigint not null,
  row_number bigint not null,
  line_number bigint not null,
  byte_offset bigint not null,
  column_name text,
  error_code text not null,
  message text not null,
  raw bytea not null,
  kind text,
  cause bigint not null,
  shape text not null,
  constraint load_rejects_pkey primary key (load_id, row_number),
  constraint load_rejects_load_fkey foreign key (load_id) references sluice.loads on delete cascade
);
comment on table sluice.load_rejects is 'Every refused record as it stood in the file, and the reason. Of a load whose text must not be kept, raw is empty.';
comment on column sluice.load_rejects.kind is
  'The kind in sluice.load_kinds that it was counted under; null where kinds are not counted.';
comment on column sluice.load_rejects.cause is
  'A hash of error_code, column_name and shape: records of one cause are counted together.';
comment on column sluice.load_rejects.shape is
  'The value at fault with digits as 9 and words as a, bounded; empty where the code says it all.';
create index load_rejects_cause_idx on sluice.load_rejects (load_id, cause, row_number);

create table sluice.load_mends (
  load_id bigint not null,
  row_number bigint not null,
  mended_by bigint not null,
  mended_row bigint not null,
  constraint load_mends_pkey primary key (mended_by, mended_row),
  constraint load_mends_load_fkey foreign key (load_id) references sluice.loads on delete cascade,
  constraint load_mends_mended_by_fkey foreign key (mended_by) references sluice.loads on delete cascade
);
comment on table sluice.load_mends is
  'Record mended_row of load mended_by is refused record row_number of load_id, corrected: a file of rejects was loaded again.';
create index load_mends_load_idx on sluice.load_mends (load_id, row_number);

-- The refused records of a load that mends, or mends of mends, loaded since: a row for each such load of a record.
create function sluice.mended_since(load bigint) returns table (row_number bigint, mended_by bigint)
  language plpgsql stable
as $$
#variable_conflict use_column
begin
  return query
  with recursive mended as (
    select m.row_number, m.mended_by, m.mended_row
    from sluice.load_mends m
    where m.load_id = load
    union
    select earlier.row_number, m.mended_by, m.mended_row
    from mended earlier
    join sluice.load_mends m on m.load_id = earlier.mended_by and m.row_number = earlier.mended_row
  )
  select m.row_number, m.mended_by
  from mended m
  join sluice.loads l on l.load_id = m.mended_by
  where l.status = 'completed'
    and not exists (select 1 from sluice.load_lineage n where n.load_id = l.load_id and n.taken_back_by is not null)
    and exists (select 1 from sluice.load_rejects r where r.load_id = load and r.row_number = m.row_number)
    and not exists (select 1 from sluice.load_rejects r where r.load_id = m.mended_by and r.row_number = m.mended_row);
end
$$;
-- Most loads have no mend, and are asked about whenever somebody looks at the overview.
create function sluice.count_mended(load bigint) returns bigint
  language sql stable
  return case
    when exists (select 1 from sluice.load_mends m where m.load_id = load)
    then (select count(distinct m.row_number) from sluice.mended_since(load) m)
    else 0
  end;

-- What a plan found: the profiles that are new or would change, as they are and as they would be. Without a foreign key, which would look
-- up the load of every row; they are removed with the file of the load, which goes first. Written by COPY where all are new.

create table sluice.planned_rows (
  load_id bigint not null,
  chunk_no integer not null,
  is_new boolean not null,
  is_repeated boolean not null default false,
  entity text not null,
  key text collate "C" not null,
  before jsonb,
  company_before text collate "C",
  after jsonb,
  company_after text collate "C",
  constraint planned_rows_entity_check check (entity in ('users', 'companies')),
  constraint planned_rows_new_has_no_before check (is_new = (before is null))
);
comment on table sluice.planned_rows is 'Profiles that a planned load would make, change or remove; unchanged ones are not here.';
comment on column sluice.planned_rows.after is 'Null: the profile would be removed.';
comment on column sluice.planned_rows.chunk_no is 'The chunk, of several the last; behind all chunks: made because a user names it.';
create index planned_rows_place_idx on sluice.planned_rows (load_id, entity, is_new, chunk_no);
create unique index planned_rows_repeated_key on sluice.planned_rows (load_id, entity, key) where is_repeated;

create table sluice.planned_chunks (
  load_id bigint not null,
  chunk_no integer not null,
  entity text not null,
  rows_new bigint not null default 0,
  rows_changed bigint not null default 0,
  rows_removed bigint not null default 0,
  properties jsonb not null default '{}',
  companies text[] not null default '{}',
  constraint planned_chunks_pkey primary key (load_id, chunk_no, entity),
  constraint planned_chunks_load_fkey foreign key (load_id) references sluice.loads on delete cascade,
  constraint planned_chunks_entity_check check (entity in ('users', 'companies'))
);
comment on table sluice.planned_chunks is 'The sums that each chunk adds to the summary of a plan, until it is written.';
comment on column sluice.planned_chunks.chunk_no is 'A number below 0 marks corrections.';
comment on column sluice.planned_chunks.properties is
  '{name: [values that appear, change, go, change their type]}';
comment on column sluice.planned_chunks.companies is 'Companies that users name and that were not there.';

create table sluice.planned_events (
  load_id bigint not null,
  event_name text collate "C",
  day date,
  events bigint not null,
  constraint planned_events_load_fkey foreign key (load_id) references sluice.loads on delete cascade,
  constraint planned_events_by_name_or_day check (num_nonnulls(event_name, day) = 1)
);
comment on table sluice.planned_events is
  'The events that each chunk of a plan would add, by name and by day, until its summary is written. A number below 0 corrects others.';
comment on column sluice.planned_events.day is 'In UTC.';
create index planned_events_load_idx on sluice.planned_events (load_id);

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
  'The time since which it is being removed, and no load may take it.';
create index received_files_age_idx on sluice.received_files (received_at);
