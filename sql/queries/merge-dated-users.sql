-- Lays single records of users that may have a time of their own over what is stored. Property by property the later time
-- wins, of equal ones the later record.
-- The earliest time is when the profile was seen first; before 2000 are those of properties that only fill in (EARLIEST_EVENT).
-- $1 json  records in the order in which they came: [{"e": environment_id, "k": user_id, "t": time, "c": company_id, "p": properties}]
--          t absent, or ahead of now: now; c absent leaves the user's company as it is, '' takes the user out of it
-- A suppressed user is refused. The lock shows a deletion for whom to wait (readersOfSuppressions).
-- apply-user-removals.sql must follow in the transaction if some property is null or some c is ''.
with incoming as (
  select i.e, coalesce(
    (
      select sluice.refuse_suppressed(s.id_hash)
      from sluice.suppression_keys h
      join sluice.suppressions s on s.environment_id = h.environment_id and s.id_hash = sluice.id_hash(h.secret, i.k)
      where h.environment_id = i.e
      for key share of s
    ),
    i.k
  ) as k, i.c, i.p, i.n, sluice.micros(least(coalesce(i.t, now()), now())) as at, i.t
  from rows from (
    json_to_recordset($1::json) as (e integer, k text, t timestamptz, c text, p jsonb)
  ) with ordinality as i (e, k, t, c, p, n)
),
folded as (
  select
    e,
    k,
    (array_agg(c order by at desc, n desc) filter (where c is not null))[1] as c,
    sluice.merged_properties(p order by at, n) as p,
    sluice.merged_properties((select jsonb_object_agg(name, at) from jsonb_object_keys(p) name) order by at, n) as times,
    max(at) filter (where c is not null) as company_at,
    bool_or(at < sluice.micros(now())) as is_dated,
    min(t) filter (where t >= timestamptz '2000-01-01 00:00:00Z') as seen
  from incoming
  group by e, k
)
insert into sluice.users as stored (environment_id, user_id, company_id, metadata, times, first_seen_at)
select e, k, c, p, sluice.incoming_times(p, times, c, company_at, is_dated, sluice.micros(now())), least(seen, now())
from folded
order by e, k collate "C"
on conflict (environment_id, user_id) do update set
  (metadata, times, company_id, last_seen_at, first_seen_at) = (
    select
      m.merged,
      m.merged_times,
      m.merged_company,
      excluded.last_seen_at,
      least(stored.first_seen_at, excluded.first_seen_at)
    from sluice.merge_dated(
      stored.metadata, stored.times, stored.company_id, stored.last_seen_at,
      excluded.metadata, excluded.times, excluded.company_id, sluice.micros(excluded.last_seen_at)
    ) m
  )
