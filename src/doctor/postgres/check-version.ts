import type { ClientBase } from 'pg';
import { type Finding, failed, ok } from '../finding.ts';

const oldest = 150_000;

export async function checkVersion(client: ClientBase): Promise<Finding[]> {
  const { rows } = await client.query<{ version: string; number: number; readOnly: boolean }>(`
    select
      current_setting('server_version') as version,
      current_setting('server_version_num')::int as number,
      pg_is_in_recovery() or current_setting('transaction_read_only')::bool as "readOnly"`);
  const { version = '', number = 0, readOnly = false } = rows[0] ?? {};
  const check = 'postgres version';
  const found = `PostgreSQL ${version}`;
  const findings =
    number >= oldest ? [ok(check, found)] : [failed(check, found, 'Use PostgreSQL 15 or newer.')];
  if (!readOnly) return findings;
  const advice = 'Point DATABASE_URL at the primary server.';
  return [
    ...findings,
    failed('postgres writes', 'the server takes no writes: it is a replica or read-only', advice),
  ];
}
