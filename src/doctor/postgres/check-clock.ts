import type { ClientBase } from 'pg';
import { type Finding, ok, warning } from '../finding.ts';

const mostSkewMs = 2_000;

/** Leases run by the database's clock, links and idempotency by ours too. */
export async function checkClock(client: ClientBase, now: () => number = Date.now): Promise<Finding[]> {
  const before = now();
  const { rows } = await client.query<{ ms: number }>(
    'select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms',
  );
  const after = now();
  // It was read at some moment of the round trip; half of that is what we cannot know.
  const skewMs = (rows[0]?.ms ?? 0) - (before + after) / 2;
  const check = 'postgres clock';
  const seconds = (Math.abs(skewMs) / 1000).toFixed(1);
  const found = `the database's clock is ${seconds} s ${skewMs < 0 ? 'behind' : 'ahead of'} this machine's`;
  if (Math.abs(skewMs) - (after - before) / 2 <= mostSkewMs) return [ok(check, found)];
  return [warning(check, found, 'Run NTP on both machines.')];
}
