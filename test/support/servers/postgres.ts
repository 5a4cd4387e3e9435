import { inject } from 'vitest';
import { databaseUrl, runOn } from './postgres-server.ts';

export interface TestDatabase {
  readonly url: string;
  /** Runs `alter database … with <option>`, for instance to refuse new connections. */
  alter(option: string): Promise<void>;
  /** Ends all sessions and removes the database. */
  drop(): Promise<void>;
}

/** Databases that this process has made. */
let count = 0;

/** Creates a database with both schemas (the service's, the queue's) and no rows, in some 50 ms. */
export function createTestDatabase(): Promise<TestDatabase> {
  return createFrom(inject('postgresTemplate'));
}

/** Creates an empty database, as before the first start. */
export function createEmptyDatabase(): Promise<TestDatabase> {
  return createFrom('template0');
}

async function createFrom(source: string): Promise<TestDatabase> {
  const serverUrl = inject('postgresUrl');
  const name = `test_${process.pid}_${++count}`;
  // A copy through the WAL takes three times as long, and the template would pass through it.
  await runOn(serverUrl, `create database ${name} template ${source} strategy file_copy`);
  return {
    url: databaseUrl(serverUrl, name),
    alter: (option) => runOn(serverUrl, `alter database ${name} with ${option}`),
    // Autovacuum may be in the database, and cannot be ended. Then the database goes with the
    // server.
    drop: () => runOn(serverUrl, `drop database if exists ${name} with (force)`).catch(() => undefined),
  };
}
