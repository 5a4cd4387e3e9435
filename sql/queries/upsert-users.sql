-- Merges single records of users, and of the companies that they name, into the stored rows.
-- $1 json  users, each key once: [{"e": environment_id, "k": user_id, "c": company_id,
--          "p": properties}]
--          c missing: the user keeps the company. c '': the user leaves the company.
-- $2 json  companies, each key once: [{"e": environment_id, "k": company_id, "p": properties}],
--          or null
-- $3 bool  true if some property is null or some c is ''. The transaction must then also run
--          apply-user-removals.sql and apply-company-removals.sql.
-- $4 integer[]  environments of the rows
-- $5 text[]  the environments' uses that were known when src/ingest/guards.ts composed the
--          statement, each as `1 name`. If there are more uses, the statement fails. It locks the
--          table of uses, and writersKnow waits for that lock.
-- The subquery has a limit, so that PostgreSQL plans it once and not for each window.
-- Users are written before companies, each in the order of keys, as by all writers. A company is
-- locked only if it gets new values, because many users have the same company. That is checked
-- after all users are locked. Users and companies therefore end as if the requests had run one
-- after another.
-- Rejected: MERGE, because it fails if two sessions insert the same key.
with incoming_users as (
  select i.e, i.k /* guarded, of i.e */ as k, i.c, i.p
  from json_to_recordset($1::json) as i (e integer, k text, c text, p jsonb)
  where (
    select sluice.refuse_unknown_use(u.name)
    from sluice.environment_uses u
    where u.environment_id = any($4::integer[]) and u.environment_id || ' ' || u.name <> all($5::text[])
    limit 1
    for key share
  ) is null
  order by i.e, i.k collate "C"
),
written_users as (
  insert into sluice.users as stored (environment_id, user_id, company_id, metadata)
  select i.e, i.k, i.c, i.p
  from incoming_users i
  order by i.e, i.k collate "C"
  on conflict (environment_id, user_id) do update set
    metadata = case
      when $3::boolean then sluice.without_nulls(stored.metadata || excluded.metadata)
      else stored.metadata || excluded.metadata
    end,
    company_id = case
      when excluded.company_id is null then stored.company_id
      else nullif(excluded.company_id, '')
    end,
    last_seen_at = excluded.last_seen_at
  returning 1
),
incoming_companies as (
  select i.e, i.k, i.p
  from sluice.companies_to_write($2::json, $3::boolean) as i
  where (select count(*) from written_users) >= 0
  order by i.e, i.k collate "C"
)
insert into sluice.companies as stored (environment_id, company_id, metadata)
select i.e, i.k, i.p
from incoming_companies i
order by i.e, i.k collate "C"
on conflict (environment_id, company_id) do update set
  metadata = case
    when $3::boolean then sluice.without_nulls(stored.metadata || excluded.metadata)
    else stored.metadata || excluded.metadata
  end,
  last_seen_at = excluded.last_seen_at
