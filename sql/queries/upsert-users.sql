-- Merges single records of users, and of the companies that they name, into the stored rows.
-- $1 json  users, each key once: [{"e": environment_id, "k": user_id, "c": company_id,
--          "p": properties}]
--          c absent: the user's company is unchanged. c '': the user leaves it.
-- $2 json  companies, each key once: [{"e": environment_id, "k": company_id, "p": properties}];
--          null for none
-- $3 bool  true if a property is null or a c is ''. Then apply-user-removals.sql and
--          apply-company-removals.sql must follow in the transaction.
-- $4 integer[]  environments of the rows
-- $5 text[]  their known uses when src/ingest/guards.ts composed the statement, `1 name` each. The
--          statement fails if there are more uses. writersKnow waits for sessions that hold its
--          lock. The limit makes PostgreSQL plan it once, not for each window.
-- Users are written before companies, each in key order, as in every writer. A company without new
-- values is not locked, because many users have the same one. Whether it has new values is checked
-- once all users are locked, so that user and company end as if one request had followed the other.
-- Rejected: MERGE, which fails if two sessions insert one key.
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
