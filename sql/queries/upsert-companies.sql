-- Merges single records of companies into the stored rows.
-- $1 json  companies, each key once: [{"e": environment_id, "k": company_id, "p": properties}]
-- $2 bool  true if some property is null. The transaction must then also run
--          apply-company-removals.sql.
-- $3 integer[], $4 text[]  as $4 and $5 of upsert-users.sql
insert into sluice.companies as stored (environment_id, company_id, metadata)
select i.e, i.k, i.p
from json_to_recordset($1::json) as i (e integer, k text, p jsonb)
where (
  select sluice.refuse_unknown_use(u.name)
  from sluice.environment_uses u
  where u.environment_id = any($3::integer[]) and u.environment_id || ' ' || u.name <> all($4::text[])
  limit 1
  for key share
) is null
order by i.e, i.k collate "C"
on conflict (environment_id, company_id) do update set
  metadata = case
    when $2::boolean then sluice.without_nulls(stored.metadata || excluded.metadata)
    else stored.metadata || excluded.metadata
  end,
  last_seen_at = excluded.last_seen_at
