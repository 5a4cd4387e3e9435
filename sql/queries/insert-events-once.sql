-- Inserts events. The ids of some of them were chosen by callers. If a user's event with such an id
-- is sent again, it is not inserted again.
-- $1 json  as in insert-events.sql, and "d": true if the caller chose the id. The list contains
--          such an id only once per user.
-- $2 integer[], $3 text[]  as in insert-events.sql
-- incoming: the events, if all uses are known
-- fresh: ids from callers that were not stored before
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
