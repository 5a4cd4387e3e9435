-- Returns events of a user as JSON text, newest first. The statement's text is the same for all
-- pages, so that it is prepared only once. Planning it for all months takes longer than running it.
-- $1 integer      environment_id
-- $2 text         user_id
-- $3 timestamptz  earliest time (inclusive), or -infinity
-- $4 timestamptz  start of the page: returns events before this time,
-- $5 text         and events at this time whose event_id is lower than this
-- $6 text         event_name, or null for all names
-- $7 integer      maximum number of rows
-- $8 integer      maximum bytes of JSON, which the last event may exceed
select at, id, json, found
from (
  select
    at, id, json,
    count(*) over () as found,
    sum(octet_length(json)) over (order by at desc, id desc rows unbounded preceding) - octet_length(json) as before
  from (
    select shown.inserted_at as at, shown.event_id as id, row_to_json(shown)::text as json
    from (
      select event_id, event_type, event_name, user_id, company_id, source, inserted_at, metadata
      from sluice.events
      where environment_id = $1
        and user_id = $2
        and inserted_at >= $3
        and inserted_at <= $4
        and (inserted_at < $4 or event_id < $5)
        and ($6::text is null or event_name = $6)
      order by inserted_at desc, event_id desc
      limit $7
    ) page
    cross join lateral (
      select
        page.event_id, page.event_type, page.event_name, page.user_id, page.company_id, page.source,
        to_char(page.inserted_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as inserted_at,
        page.metadata
    ) shown
  ) rendered
) counted
where before < $8
order by at desc, id desc
