import { inject } from 'vitest';
import { databaseUrl, runOn } from './postgres-server.ts';

export interface TestDatabase {
  readonly url: string;
  /** Runs `alter database … with <option>`, for example to refuse new connections. */
  alter(option: string): Promise<void>;
  drop(): Promise<void>;
}

let count = 0;

/**
 * Creates a database with the schemas of the service and of the queue, but without rows. Takes
 * about 50 ms.
 */
export function createTestDatabase(): Promise<TestDatabase> {
  return createFrom(inject('postgresTemplate'));
}

/** Creates an empty database, as before the first start of the service. */
export function createEmptyDatabase(): Promise<TestDatabase> {
  return createFrom('template0');
}

async function createFrom(source: string): Promise<TestDatabase> {
  const serverUrl = inject('postgresUrl');
  const name = `test_${process.pid}_${++count}`;
  // The strategy `wal_log` takes three times as long, because it writes the whole template to the
  // WAL.
  await runOn(serverUrl, `create database ${name} template ${source} strategy file_copy`);
  return {
    url: databaseUrl(serverUrl, name),
    alter: (option) => runOn(serverUrl, `alter database ${name} with ${option}`),
    // Dropping fails while autovacuum works in the database, because autovacuum cannot be ended.
    // The database is then removed with the server.
    drop: () => runOn(serverUrl, `drop database if exists ${name} with (force)`).catch(() => undefined),
  };
}
