/** Finds a process's database, starts it if it is embedded, and migrates it. */

import { join } from 'node:path';
import pg from 'pg';
import type { Logger } from 'pino';
import type { Config } from '../base/config.ts';
import { ConfigError } from '../base/errors.ts';
import { openChangeLog, switchChangeLog } from '../postgres/change-log.ts';
import { ConnectionMonitor } from '../postgres/connection-monitor.ts';
import { type EmbeddedPostgres, embeddedPostgres } from '../postgres/embedded/embedded-postgres.ts';
import { migrate } from '../postgres/migrate.ts';
import { isPooled, pooling } from '../postgres/session.ts';
import { migrateQueue } from './backend.ts';

type ProvideConfig = Pick<Config, 'databaseUrl' | 'dataDir'>;

export interface ProvidedDatabase {
  readonly url: string;
  /** Set if this process started the database server. */
  readonly embedded: EmbeddedPostgres | null;
  stop(): Promise<void>;
}

/** True if a start would create the database. */
export async function isNewDatabase({ databaseUrl, dataDir }: ProvideConfig): Promise<boolean> {
  if (databaseUrl !== null) return false;
  return !(await embeddedPostgres.hasData(join(dataDir, 'postgres')));
}

/**
 * Returns DATABASE_URL, even if its server does not respond. If it is not set, returns the URL of
 * the server that runs on DATA_DIR. Starts nothing.
 */
export async function findDatabaseUrl({ databaseUrl, dataDir }: ProvideConfig): Promise<string | undefined> {
  return databaseUrl ?? (await embeddedPostgres.findRunning(join(dataDir, 'postgres')));
}

/**
 * Provides the database of DATABASE_URL or, if it is not set, the embedded server. With `share`, an
 * embedded server that is already running is used. If none is running, or without `share`, the
 * embedded server is started.
 */
export async function provideDatabase(
  config: ProvideConfig,
  log: Logger,
  options: { readonly share: boolean },
): Promise<ProvidedDatabase> {
  const running = options.share ? await findDatabaseUrl(config) : config.databaseUrl;
  if (typeof running === 'string') return { url: running, embedded: null, stop: async () => undefined };
  const dataDir = join(config.dataDir, 'postgres');
  const embedded = await embeddedPostgres.startAndKeepRunning({ dataDir, log });
  return { url: embedded.url, embedded, stop: () => embedded.stop() };
}

const connectionTimeoutMillis = 10_000;

/**
 * Migrates the schemas of sluice and the queue. Only a server passes `changesDays` (CHANGES_DAYS).
 * Several processes may call this.
 */
export async function prepareDatabase(
  url: string,
  queueInPostgres: boolean,
  log: Logger,
  changesDays?: number,
): Promise<void> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'sluice migrate',
    connectionTimeoutMillis,
  });
  const monitor = new ConnectionMonitor({ url, log });
  client.on('error', (error) => log.warn({ err: error }, 'connection lost while migrating'));
  try {
    await client.connect();
    if (await isPooled(client, url)) throw new ConfigError(`${pooling.fault}. ${pooling.advice}`);
    await monitor.watch(client);
    const applied = await migrate(client);
    if (applied.length > 0) log.info({ applied }, 'database migrated');
    await openChangeLog(client, changesDays !== undefined, log);
    if (changesDays !== undefined) await switchChangeLog(client, changesDays, log);
    if (queueInPostgres) await migrateQueue(client);
  } finally {
    await client.end();
    monitor.close();
  }
}
