import type pg from 'pg';
import type { ConnectionMonitor } from './connection-monitor.ts';
import { createPool } from './pool.ts';

/** One connection to ask whether the database is there, one to read figures. */
const max = 2;
const connectionTimeoutMs = 1_500;
const statementTimeoutMs = 5_000;

/**
 * Connections for those who watch, so that they neither wait for those who work nor take a connection away from them.
 * None is opened before the first look.
 */
export function createWatchPool(url: string, role: string, monitor?: ConnectionMonitor): pg.Pool {
  return createPool({
    url,
    max,
    applicationName: `sluice watch ${role}`,
    connectionTimeoutMs,
    statementTimeoutMs,
    ...(monitor !== undefined && { monitor }),
  });
}

/**
 * Throws unless the database answers and takes writes. A connection that does not answer is given up, so that the next
 * question goes to wherever the address leads by then.
 */
export async function checkDatabase(watch: pg.Pool): Promise<void> {
  const { rows } = await watch.query<{ readOnly: string }>(
    withTimeout(`select current_setting('transaction_read_only') as "readOnly"`, connectionTimeoutMs),
  );
  if (rows[0]?.readOnly !== 'off') throw new Error('the database is read-only');
}

/** `query_timeout` is how long we wait for the answer; pg knows it, its types do not. */
export function withTimeout(text: string, timeoutMs: number): pg.QueryConfig {
  return { text, query_timeout: timeoutMs } as pg.QueryConfig;
}
