-- As merge-dated-users.sql, for companies; and for those that users name, of whom p is {} unless they say more.
-- The earliest time is when the profile was seen first; before 2000 are those of properties that only fill in (EARLIEST_EVENT).
-- $1 json  [{"e": environment_id, "k": company_id, "t": time, "p": properties}]
-- apply-company-removals.sql must follow in the transaction if some property is null.
with incoming as (
  select i.e, i.k, i.p, i.n, sluice.micros(least(coalesce(i.t, now()), now())) as at, i.t
  from rows from (
    json_to_recordset($1::json) as (e integer, k text, t timestamptz, p jsonb)
  ) with ordinality as i (e, k, t, p, n)
),
folded as (
  select
    e,
    k,
    sluice.merged_properties(p order by at, n) as p,
    sluice.merged_properties((select jsonb_object_agg(name, at) from jsonb_object_keys(p) name) order by at, n) as times,
    bool_or(at < sluice.micros(now())) as is_dated,
    min(t) filter (where t >= timestamptz '2000-01-01 00:00:00Z') as seen
  from incoming
  group by e, k
)
insert into sluice.companies as stored (environment_id, company_id, metadata, times, first_seen_at)
select e, k, p, sluice.incoming_times(p, times, null, null, is_dated, sluice.micros(now())), least(seen, now())
from folded
order by e, k collate "C"
on conflict (environment_id, company_id) do update set
  (metadata, times, last_seen_at, first_seen_at) = (
    select
      m.merged,
      m.merged_times,
      excluded.last_seen_at,
      least(stored.first_seen_at, excluded.first_seen_at)
    from sluice.merge_dated(
      stored.metadata, stored.times, null, stored.last_seen_at,
      excluded.metadata, excluded.times, null, sluice.micros(excluded.last_seen_at)
    ) m
  )
  where excluded.metadata <> '{}' or excluded.first_seen_at < stored.first_seen_at
