-- Adds events whose ids are our own. Partitions must be there (sluice.ensure_events_partition).
-- $1 json  [{"e": environment_id, "i": event_id, "n": event_name, "u": user_id, "c": company_id, "t": inserted_at, "p": metadata}]
--          c absent: the user's company, if the user is known; t absent: now
insert into sluice.events
  (environment_id, event_id, event_name, user_id, company_id, source, inserted_at, metadata)
select
  i.e, i.i, i.n, i.u, coalesce(i.c, u.company_id), 'backend-http', coalesce(i.t, clock_timestamp()), i.p
from json_to_recordset($1::json) as i (e integer, i text, n text, u text, c text, t timestamptz, p jsonb)
left join sluice.users u on u.environment_id = i.e and u.user_id = i.u
