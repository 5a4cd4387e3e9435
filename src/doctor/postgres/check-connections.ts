import type { ClientBase } from 'pg';
import type { Config } from '../../config.ts';
import { type Finding, ok, warning } from '../finding.ts';

/** Those who watch (`createWatchPool`), and the one that asks after the others (`ConnectionMonitor`). */
const watching = 2 + 1;
/** With the queue in PostgreSQL: a pool of two for each of the queues that a process adds to … */
const queues = 2 * 2;
/** … and for each of the queues that a worker takes from one of two, and one that listens. */
const consumers = 2 * 3;
/** A command of a person, with room for its own queues. */
const command = 4 + queues;

type Sizes = Pick<Config, 'redisUrl' | 'poolSize' | 'workers' | 'workerPoolSize'>;

/** How many connections one `sluice start` and a command beside it may come to. */
export function connectionsWanted({ redisUrl, poolSize, workers, workerPoolSize }: Sizes): number {
  const ofQueue = (count: number): number => (redisUrl === null ? count : 0);
  const serving = poolSize + watching + ofQueue(queues);
  return serving + workers * (workerPoolSize + 1 + ofQueue(queues + consumers)) + command;
}

export async function checkConnections(client: ClientBase, config: Sizes): Promise<Finding[]> {
  const { rows } = await client.query<{ most: number; used: number }>(`
    select
      least(
        current_setting('max_connections')::int
          - current_setting('superuser_reserved_connections')::int
          - coalesce(current_setting('reserved_connections', true), '0')::int,
        nullif(d.datconnlimit, -1),
        nullif(r.rolconnlimit, -1)
      ) as most,
      (
        select count(*)
        from pg_stat_activity
        where backend_type = 'client backend' and application_name not like 'sluice%'
      )::int as used
    from pg_database d, pg_roles r
    where d.datname = current_database() and r.rolname = current_user`);
  const { most = 0, used = 0 } = rows[0] ?? {};
  const check = 'postgres connections';
  const wanted = connectionsWanted(config);
  const found = `${most} to be had, ${used} used by others; one \`sluice start\` with ${config.workers} workers may open ${wanted}`;
  if (wanted + used <= most) return [ok(check, found)];
  const advice =
    'Raise max_connections, or lower WORKERS, POOL_SIZE or WORKER_POOL_SIZE; count in what other machines run.';
  return [warning(check, found, advice)];
}
