import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../database.ts';
import { isDue } from './lease.ts';

/*
 * A job in the queue says that something is due, not what: whoever takes one does what is next here. The queue is first
 * come, first served, and would give all its workers to whoever asked for most. Here environments take turns: first the one
 * with the fewest tasks under way, among equals the one that was served longest ago. So no environment gets another task
 * while one that has fewer under way waits, and none needs a bound of its own.
 */
const fairly = (served: readonly number[]): RawBuilder<unknown> =>
  sql`under_way, array_position(${[...served]}::integer[], environment_id) nulls first`;

/** The export that is next; null if none is due. */
export async function findNextExport(
  db: Database,
  served: readonly number[],
): Promise<{ readonly exportId: number; readonly environmentId: number } | null> {
  const { rows } = await sql<{ exportId: number; environmentId: number }>`
    select export_id as "exportId", environment_id as "environmentId"
    from (
      select
        environment_id,
        min(export_id) filter (
          where lease_until is null and ${isDue('due_at')}
        ) as export_id,
        count(*) filter (where lease_until is not null) as under_way
      from exports
      where status in ('queued', 'processing')
      group by environment_id
    ) waiting
    where export_id is not null
    order by ${fairly(served)}, export_id
    limit 1`.execute(db);
  return rows[0] ?? null;
}
