-- Creates the users that events of a rewritten file name, if they do not exist.
-- $1 json  users, each key once: [{"e": environment_id, "k": user_id}]
-- In key order, as in every writer.
insert into sluice.users (environment_id, user_id)
select i.e, i.k
from json_to_recordset($1::json) as i (e integer, k text)
order by i.e, i.k collate "C"
on conflict (environment_id, user_id) do nothing
