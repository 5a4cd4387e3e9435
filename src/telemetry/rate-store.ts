import { type RawBuilder, sql } from 'kysely';
import { RATE_PERIODS, RATE_STEPS } from '../base/limits.ts';
import type { Database } from '../postgres/database.ts';

export interface Counted {
  accepted: number;
  unchanged: number;
  rejected: number;
}

export const stepOf = (minutes: RawBuilder<unknown>) => sql`(${minutes} * interval '1 minute')`;
export const currentStep = (minutes: RawBuilder<unknown>) =>
  sql`date_bin(${stepOf(minutes)}, now(), 'epoch')`;
const periodMinutes = Object.values(RATE_PERIODS);

/**
 * Writes the counts in the order of environments, so that two processes cannot block each other.
 */
export async function addRates(
  db: Database,
  countsByEnvironment: ReadonlyMap<number, Counted>,
): Promise<void> {
  const rows = [...countsByEnvironment].map(([environment, counts]) => ({ environment, ...counts }));
  await sql`
    with old as (
      delete from rates
      where environment_id = any (${rows.map(({ environment }) => environment)}::int[])
        and begins_at < now() - 2 * ${RATE_STEPS}::int * ${stepOf(sql`minutes`)}
    )
    insert into rates as r (environment_id, minutes, begins_at, accepted, unchanged, rejected)
    select environment, minutes, ${currentStep(sql`minutes`)}, accepted, unchanged, rejected
    from json_to_recordset(${JSON.stringify(rows)}) as c (environment int, accepted bigint, unchanged bigint, rejected bigint)
    cross join unnest(${periodMinutes}::int[]) as minutes
    order by environment, minutes
    on conflict (environment_id, minutes, begins_at) do update set
      accepted = r.accepted + excluded.accepted,
      unchanged = r.unchanged + excluded.unchanged,
      rejected = r.rejected + excluded.rejected`.execute(db);
}
