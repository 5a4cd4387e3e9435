-- How large each segment was, day by day. Counted every night, kept for 400 days.

create table sluice.segment_sizes (
  segment_id integer not null,
  day date not null,
  users bigint,
  constraint segment_sizes_pkey primary key (segment_id, day),
  constraint segment_sizes_segment_fkey foreign key (segment_id) references sluice.segments on delete cascade,
  constraint segment_sizes_users_check check (users >= 0)
);
comment on table sluice.segment_sizes is 'The number of users in a segment on a day, UTC.';
comment on column sluice.segment_sizes.users is 'Null if it took too long to count them, or an older version could not read the definition.';
create index segment_sizes_day_idx on sluice.segment_sizes (day);
