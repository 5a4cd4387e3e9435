-- Of companies, those that something is brought for which they do not have.
--
-- Volatile, so that it looks at what is committed when it is called, and not when the statement began that calls it: that one
-- may have waited for a user whom another server wrote together with its company (sql/queries/upsert-users.sql).
-- PL/pgSQL, because that keeps its plans for the session; strict, so that a statement without companies costs nothing.

create function sluice.companies_to_write(incoming json, removes boolean)
returns table (e integer, k text, p jsonb)
language plpgsql volatile strict
as $$
#variable_conflict use_column
begin
  return query
    select i.e, i.k, i.p
    from json_to_recordset(incoming) as i (e integer, k text, p jsonb)
    where not exists (
      select
      from sluice.companies c
      where c.environment_id = i.e
        and c.company_id = i.k
        and case
          when removes then sluice.without_nulls(c.metadata || i.p) = c.metadata
          else c.metadata || i.p = c.metadata
        end
    );
end
$$;
