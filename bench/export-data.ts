import type pg from 'pg';

/** Number of dates that have events. The last date is yesterday. */
export const days = 90;

/**
 * PostgreSQL creates `count` events of the stored users, and spreads them equally over the dates.
 * As NDJSON, an event has some 330 bytes. `first` is the number of the first event, so that later
 * calls can add more events.
 */
export async function addEvents(client: pg.Client, first: number, count: number): Promise<void> {
  await client.query(
    `select sluice.ensure_events_partition(now() - make_interval(days => day))
    from generate_series(0, ${days} + 1) as day`,
  );
  await client.query(
    `create temporary table if not exists actors as
    select row_number() over (order by hashtext(user_id)) - 1 as actor, user_id, company_id
    from sluice.users
    where environment_id = 1`,
  );
  // The events are sorted by time, because real events arrive in this order.
  await client.query(
    `insert into sluice.events
      (environment_id, event_id, event_type, event_name, user_id, company_id, source, inserted_at, metadata)
    select
      1,
      'evt_' || lpad(to_hex(n), 12, '0'),
      'track',
      (array['page_opened', 'report_shared', 'plan_changed', 'file_uploaded', 'search_made'])[1 + n % 5],
      user_id,
      company_id,
      'backend-http',
      date_trunc('day', now()) - make_interval(days => ${days})
        + (n - $1) * interval '${days} days' / $2::bigint,
      jsonb_build_object('page', '/projects/' || n % 977, 'seconds', n % 311, 'browser', 'Firefox', 'returning', n % 3 = 0)
    from generate_series($1::bigint, $1::bigint + $2::bigint - 1) as series (n)
    join actors on actor = n % (select count(*) from actors)
    order by n`,
    [first, count],
  );
  await client.query('vacuum (analyze) sluice.events');
}
