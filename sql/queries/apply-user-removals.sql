-- Removes the marks of removals from new users. A removal for a new user is inserted as a mark,
-- because ON CONFLICT has only the inserted values. Nobody sees the marks before this statement.
-- $1 json  as in upsert-users.sql
update sluice.users u
set
  metadata = sluice.without_nulls(u.metadata),
  company_id = nullif(u.company_id, '')
from json_to_recordset($1::json) as i (e integer, k text)
where u.environment_id = i.e
  and u.user_id = i.k
  and (u.company_id = '' or u.metadata <> sluice.without_nulls(u.metadata))
