import pg from 'pg';

export const databaseName = 'sluice';
export const roleName = 'sluice';

export function serverUrl(port: number, password: string): string {
  return `postgres://${roleName}:${password}@127.0.0.1:${port}/${databaseName}`;
}

/**
 * Logs in and returns the server's version. Because scram proves the password to both sides,
 * success means it is our server that answers, not another one that got the same port.
 */
export async function askVersion(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url, ssl: false, connectionTimeoutMillis: 5_000 });
  // A server that goes away between two of our statements reports here; the statement fails as well.
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<{ server_version: string }>('show server_version');
    return rows[0]?.server_version ?? '';
  } finally {
    await client.end().catch(() => undefined);
  }
}
