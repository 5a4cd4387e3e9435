import { sql } from 'kysely';
import { KEPT_RATE_MINUTES } from '../../domain/limits.ts';
import type { Database } from '../database.ts';

/* What came in by the minute, of the last hour. */

export type Counted = 'records' | 'refused' | 'rows';

/** In the order of environments, so that two processes do not wait for each other for ever. */
export async function addRates(
  db: Database,
  counted: ReadonlyMap<number, Readonly<Record<Counted, number>>>,
): Promise<void> {
  const rows = [...counted].map(([environment, counts]) => ({ environment, ...counts }));
  rows.sort((a, b) => a.environment - b.environment);
  await sql`
    with old as (
      delete from minute_rates
      where environment_id = any (${rows.map(({ environment }) => environment)}::int[])
        and minute < now() - ${KEPT_RATE_MINUTES} * interval '1 minute' - interval '1 hour'
    )
    insert into minute_rates as m (environment_id, minute, records, refused, rows)
    select environment, date_trunc('minute', now()), records, refused, rows
    from json_to_recordset(${JSON.stringify(rows)}) as c (environment int, records bigint, refused bigint, rows bigint)
    on conflict (environment_id, minute) do update set
      records = m.records + excluded.records,
      refused = m.refused + excluded.refused,
      rows = m.rows + excluded.rows`.execute(db);
}

export interface MinuteRate extends Readonly<Record<Counted, number>> {
  readonly minute: Date;
}

/** The last hour, oldest first; minutes in which nothing came are there too. */
export async function readRates(db: Database, environmentId: number): Promise<MinuteRate[]> {
  const { rows } = await sql<MinuteRate>`
    select
      g.minute,
      coalesce(m.records, 0) as records,
      coalesce(m.refused, 0) as refused,
      coalesce(m.rows, 0) as rows
    from generate_series(
      date_trunc('minute', now()) - ${KEPT_RATE_MINUTES - 1} * interval '1 minute', date_trunc('minute', now()),
      interval '1 minute'
    ) g (minute)
    left join minute_rates m on m.environment_id = ${environmentId} and m.minute = g.minute
    order by g.minute`.execute(db);
  return rows;
}
