-- Finishes removals of properties and companies for new users. ON CONFLICT can use only the
-- inserted values, so a removal is inserted as a mark (null or ''). For a new user, the mark itself
-- is stored, and this statement removes it. The marks are not visible to other transactions.
-- $1 json  as in upsert-users.sql
update sluice.users u
set
  metadata = sluice.without_nulls(u.metadata),
  company_id = nullif(u.company_id, '')
from json_to_recordset($1::json) as i (e integer, k text)
where u.environment_id = i.e
  and u.user_id = i.k
  and (u.company_id = '' or u.metadata <> sluice.without_nulls(u.metadata))
