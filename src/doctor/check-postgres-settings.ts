import type { ClientBase } from 'pg';
import type { Config } from '../config.ts';
import { plural } from '../domain/wording.ts';
import { type Finding, ok, warning } from './check.ts';

const leastWalMib = 1_024;

interface Rule {
  /** A setting of `pg_settings`; numbers are in its own unit. */
  readonly name: string;
  readonly isWrong: (value: string) => boolean;
  readonly advice: string;
}

const isOff = (value: string): boolean => value === 'off';
const isSet = (value: string): boolean => Number(value) > 0;

const rules: readonly Rule[] = [
  {
    name: 'fsync',
    isWrong: isOff,
    advice: 'A crash of the machine may destroy the database: set fsync = on.',
  },
  {
    name: 'full_page_writes',
    isWrong: isOff,
    advice: 'A crash of the machine may destroy the database: set full_page_writes = on.',
  },
  {
    name: 'synchronous_commit',
    isWrong: isOff,
    advice: 'What was answered may be lost in a crash: set synchronous_commit = on.',
  },
  {
    name: 'max_wal_size',
    isWrong: (value) => Number(value) < leastWalMib,
    advice: 'Loads of gigabytes would force checkpoint after checkpoint: set max_wal_size = 4GB.',
  },
  {
    name: 'statement_timeout',
    isWrong: isSet,
    advice:
      'Exports and deletions may take minutes in one statement: `alter role … set statement_timeout = 0`.',
  },
  {
    name: 'transaction_timeout',
    isWrong: isSet,
    advice:
      'An export reads in one transaction for as long as it takes: `alter role … set transaction_timeout = 0`.',
  },
  {
    name: 'autovacuum',
    isWrong: isOff,
    advice: 'Tables that loads update would only ever grow: set autovacuum = on.',
  },
];

/** Returns a finding for each setting that harms, or one that says that none does. */
export async function checkSettings(client: ClientBase): Promise<Finding[]> {
  const { rows } = await client.query<{ name: string; value: string; unit: string | null }>(
    'select name, setting as value, unit from pg_settings where name = any ($1)',
    [rules.map(({ name }) => name)],
  );
  const wrong = rules.flatMap(({ name, isWrong, advice }) => {
    const row = rows.find((each) => each.name === name);
    if (row === undefined || !isWrong(row.value)) return [];
    return [warning(`postgres ${name}`, `${row.value}${row.unit === null ? '' : ` ${row.unit}`}`, advice)];
  });
  return wrong.length > 0 ? wrong : [ok('postgres settings', 'nothing that harms')];
}

/** The connections of `createWatchPool`, and that of `ConnectionMonitor`. */
const watching = 2 + 1;
/** With the queue in PostgreSQL: a pool of two for each of the queues that a process adds to … */
const queues = 2 * 2;
/** … and for each of the queues that a worker takes from one of two, and one that listens. */
const consumers = 2 * 3;
/** A command of a person, with room for its own queues. */
const command = 4 + queues;

type Sizes = Pick<Config, 'redisUrl' | 'poolSize' | 'workers' | 'workerPoolSize'>;

/** Counts the connections that one `sluice start` and a command beside it may open. */
function connectionsWanted({ redisUrl, poolSize, workers, workerPoolSize }: Sizes): number {
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
  const found = `${most} to be had, ${used} used by others; one \`sluice start\` with ${plural(config.workers, 'worker')} may open ${wanted}`;
  if (wanted + used <= most) return [ok(check, found)];
  const advice =
    'Raise max_connections, or lower WORKERS, POOL_SIZE or WORKER_POOL_SIZE; count in what other machines run.';
  return [warning(check, found, advice)];
}
