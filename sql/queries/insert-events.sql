-- Inserts events whose ids sluice created. Partitions must exist (sluice.ensure_events_partition).
-- $1 json  [{"e": environment_id, "i": event_id, "n": event_name, "u": user_id, "c": company_id,
--          "t": inserted_at, "p": metadata}]
--          c missing: the user's company, if the user is known. c '': no company. t missing: now.
--          "v": true for a page view
-- $2 integer[]  environments of the rows
-- $3 text[]  the environments' uses that were known when src/ingest/guards.ts composed the
--          statement, each as `1 name`. If there are more uses, the statement fails. It locks the
--          table of uses, and writersKnow waits for that lock.
-- The subquery has a limit, so that PostgreSQL plans it once and not for each window.
-- Missing times are set in the order of the list, because the join may change the order.
insert into sluice.events
  (environment_id, event_id, event_type, event_name, user_id, company_id, source, inserted_at, metadata)
select
  i.e, i.i, case when i.v then 'page_view' else 'track' end, i.n,
  i.u /* guarded, of i.e */,
  nullif(coalesce(i.c, u.company_id), ''), 'backend-http', i.t, i.p
from (
  select e, i, n, u, c, coalesce(t, clock_timestamp()) as t, p, v
  from json_to_recordset($1::json) as given (e integer, i text, n text, u text, c text, t timestamptz, p jsonb, v boolean)
) i
left join sluice.users u on u.environment_id = i.e and u.user_id = i.u
where (
  select sluice.refuse_unknown_use(u.name)
  from sluice.environment_uses u
  where u.environment_id = any($2::integer[]) and u.environment_id || ' ' || u.name <> all($3::text[])
  limit 1
  for key share
) is null
