import { until } from './patience.ts';
import type { Sql } from './site/site.ts';

/** What the ledger still has to do. */
const open = `
  select 'load ' || job_id || ' is ' || status as what from sluice.loads where status in ('queued', 'processing')
  union all
  select 'export ' || job_id || ' is ' || status from sluice.exports where status in ('queued', 'processing')
  union all
  select 'deletion ' || job_id || ' is ' || status from sluice.deletions where status in ('queued', 'processing')
  union all
  select 'run of ' || schedule_name || ' is ' || status from sluice.schedule_runs where ended_at is null
  union all
  select 'files of export ' || job_id || ' are there' from sluice.exports
  where status in ('failed', 'cancelled') and files_expired_at is null`;

/** Waits until nothing is under way; what still is, in words, if it does not end. */
export async function awaitQuiet(sql: Sql, timeoutMs: number): Promise<readonly string[]> {
  let left: readonly { readonly what: string }[] = [];
  await until(
    async () => {
      left = await sql<{ what: string }>(open);
      return left.length === 0 ? true : null;
    },
    { timeoutMs, everyMs: 250 },
  );
  return left.map(({ what }) => what);
}
