-- A user that removes something and turned out to be new was inserted with what stands for the removal, since ON CONFLICT
-- knows no other values than those to be inserted. Takes it out before anybody can see it.
-- $1 json  as in upsert-users.sql
update sluice.users u
set
  metadata = sluice.without_nulls(u.metadata),
  company_id = nullif(u.company_id, '')
from json_to_recordset($1::json) as i (e integer, k text)
where u.environment_id = i.e
  and u.user_id = i.k
  and (u.company_id = '' or u.metadata <> sluice.without_nulls(u.metadata))
