import type { Sql, Tenant } from '../site/site.ts';
import { some } from './actor.ts';
import { layBatch } from './batch.ts';
import type { ProfileSpace } from './profile-space.ts';
import type { Versions } from './versions.ts';

/** A load that a run made, or met: then somebody had loaded those bytes before. */
interface Taken {
  readonly item: string;
  readonly version: string;
  readonly job_id: string;
  readonly is_new: boolean;
  readonly rows_read: number;
  readonly rows_inserted: number;
  readonly rows_known: number;
  readonly rows_superseded: number;
  readonly rows_rejected: number;
}

/**
 * Lays what runs of the schedule have loaded over the space, in the order of the loads, and compares: no version twice,
 * each with the tally that it must have, and nothing left that stood there when the last run that went well began.
 */
export async function checkScheduledLoads(
  sql: Sql,
  tenant: Tenant,
  schedule: string,
  versions: Versions,
  space: ProfileSpace,
): Promise<string[]> {
  const problems: string[] = [];
  const loaded = new Map<string, string>();
  const jobs: string[] = [];
  for (const taken of await readTaken(sql, tenant, schedule)) {
    const { item, version, job_id } = taken;
    const name = `${item} ${version}`;
    const batch = versions.find(item, version);
    const before = loaded.get(name);
    if (batch === undefined) problems.push(`load ${job_id} is of ${name}, which was never there`);
    else if (!taken.is_new && before !== job_id) problems.push(`load ${job_id} of ${name} is nobody's`);
    else if (taken.is_new && before !== undefined) problems.push(`${name} was loaded twice: ${job_id}`);
    if (batch === undefined || !taken.is_new) continue;
    loaded.set(name, job_id);
    jobs.push(job_id);
    const { refused, ...expected } = layBatch(batch);
    const wanted = JSON.stringify({ ...expected, refused: refused.length });
    const found = JSON.stringify({
      read: taken.rows_read,
      inserted: taken.rows_inserted,
      known: taken.rows_known,
      superseded: taken.rows_superseded,
      refused: taken.rows_rejected,
    });
    if (found !== wanted) problems.push(`load ${job_id} of ${name} came to ${found}, not ${wanted}`);
  }
  const strays = await readStrays(sql, tenant, space.prefix, jobs);
  if (strays.length > 0) problems.push(`loads that no run knows of: ${some(strays)}`);
  const missed = versions
    .standingSince(await readLastGood(sql, tenant, schedule))
    .filter((name) => !loaded.has(name));
  if (missed.length > 0) problems.push(`there when ${schedule} ran, and not loaded: ${some(missed)}`);
  return [...problems, ...(await space.check(sql))];
}

/** In the order in which they took effect; of one load what made it first. */
function readTaken(sql: Sql, { environmentId }: Tenant, schedule: string): Promise<Taken[]> {
  return sql<Taken>(
    `select item, version, job_id, is_new, rows_read, rows_inserted, rows_updated + rows_unchanged as rows_known,
       rows_superseded, rows_rejected
     from sluice.schedule_runs r
     join sluice.schedule_run_items using (run_id)
     join sluice.loads using (job_id)
     where r.environment_id = $1 and r.schedule_name = $2
     order by lane_position, is_new desc, run_id`,
    [environmentId, schedule],
  );
}

/** Jobs of loads of such files, other than these. */
async function readStrays(
  sql: Sql,
  { environmentId }: Tenant,
  prefix: string,
  known: readonly string[],
): Promise<readonly string[]> {
  const rows = await sql<{ job_id: string }>(
    `select job_id from sluice.loads
     where environment_id = $1 and starts_with(filename, $2) and not job_id = any($3::uuid[])`,
    [environmentId, prefix, known],
  );
  return rows.map(({ job_id }) => job_id);
}

/** When the last run that went well began; 0: none did. */
async function readLastGood(sql: Sql, { environmentId }: Tenant, schedule: string): Promise<number> {
  const [row] = await sql<{ at: Date | null }>(
    `select max(started_at) as at from sluice.schedule_runs
     where environment_id = $1 and schedule_name = $2
       and status in ('completed', 'completed_with_rejects', 'unchanged')`,
    [environmentId, schedule],
  );
  return row?.at?.getTime() ?? 0;
}
