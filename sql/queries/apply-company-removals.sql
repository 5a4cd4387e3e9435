-- Does the same as apply-user-removals.sql for companies.
-- $1 json  as in upsert-companies.sql
update sluice.companies c
set metadata = sluice.without_nulls(c.metadata)
from json_to_recordset($1::json) as i (e integer, k text)
where c.environment_id = i.e
  and c.company_id = i.k
  and c.metadata <> sluice.without_nulls(c.metadata)
