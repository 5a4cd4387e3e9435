-- Adds events, some of which bear an id that their caller gave: such an event of a user is added once, whenever it comes again.
-- $1 json  as in insert-events.sql, and "d": true where the id is the caller's; such ids come once each for a user
-- $2 integer[]  the environments of the rows
-- $3 text[]  what these were known to use when src/ingest/guards.ts composed the statement, `1 name` each. It fails if one uses more.
--          writersKnow waits for the sessions that hold its lock. The limit makes PostgreSQL plan it once, not for each window
with incoming as materialized (
  select i.e, i.i, i.n, i.u, i.c, coalesce(i.t, clock_timestamp()) as t, i.p, coalesce(i.d, false) as d, i.v
  from json_to_recordset($1::json) as i (e integer, i text, n text, u text, c text, t timestamptz, p jsonb, d boolean, v boolean)
  where (
    select sluice.refuse_unknown_use(u.name)
    from sluice.environment_uses u
    where u.environment_id = any($2::integer[]) and u.environment_id || ' ' || u.name <> all($3::text[])
    limit 1
    for key share
  ) is null
),
fresh as (
  insert into sluice.event_ids (environment_id, event_id, user_id, inserted_at)
  select e, i, u, t
  from incoming
  where d
  order by e, i collate "C", u collate "C"
  on conflict do nothing
  returning environment_id, event_id, user_id
)
insert into sluice.events
  (environment_id, event_id, event_type, event_name, user_id, company_id, source, inserted_at, metadata)
select
  i.e, i.i, case when i.v then 'page_view' else 'track' end, i.n,
  i.u /* guarded, of i.e */,
  nullif(coalesce(i.c, u.company_id), ''), 'backend-http', i.t, i.p
from incoming i
left join fresh f on f.environment_id = i.e and f.event_id = i.i and f.user_id = i.u
left join sluice.users u on u.environment_id = i.e and u.user_id = i.u
where not i.d or f.event_id is not null
