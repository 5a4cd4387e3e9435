-- Inserts the users that events of a rewritten file name, unless they exist.
-- $1 json  users, each key once: [{"e": environment_id, "k": user_id}]
-- Rows are inserted in the order of keys, as by all writers, to prevent deadlocks.
insert into sluice.users (environment_id, user_id)
select i.e, i.k
from json_to_recordset($1::json) as i (e integer, k text)
order by i.e, i.k collate "C"
on conflict (environment_id, user_id) do nothing
