import pg from 'pg';
import type { Logger } from 'pino';
import { migrateQueue } from '../queue/backend.ts';
import { ConnectionMonitor } from './connection-monitor.ts';
import { migrate } from './migrate.ts';

const connectionTimeoutMillis = 10_000;

/** Brings a database up to date: our schema, and the queue's where it lives there. Safe to run by many at once. */
export async function prepareDatabase(url: string, queueInPostgres: boolean, log: Logger): Promise<void> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'sluice migrate',
    connectionTimeoutMillis,
  });
  const monitor = new ConnectionMonitor({ url, log });
  client.on('error', (error) => log.warn({ err: error }, 'connection lost while migrating'));
  await client.connect();
  try {
    await monitor.watch(client);
    const applied = await migrate(client);
    if (applied.length > 0) log.info({ applied }, 'database migrated');
    if (queueInPostgres) await migrateQueue(client);
  } finally {
    await client.end();
    monitor.close();
  }
}
