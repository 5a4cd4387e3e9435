import { inject } from 'vitest';
import { databaseUrl, runOn } from './postgres-server.ts';

export interface TestDatabase {
  readonly url: string;
  /** `alter database … with <option>`, for instance to close it to newcomers. */
  alter(option: string): Promise<void>;
  /** Throws everybody out and removes it. */
  drop(): Promise<void>;
}

/** Made so far by this process. */
let count = 0;

/** A database of its own, with both schemas (ours, the queue's) and nothing in them; some 50 ms. */
export function createTestDatabase(): Promise<TestDatabase> {
  return createFrom(inject('postgresTemplate'));
}

/** A database with nothing in it, as before the first start. */
export function createEmptyDatabase(): Promise<TestDatabase> {
  return createFrom('template0');
}

async function createFrom(source: string): Promise<TestDatabase> {
  const serverUrl = inject('postgresUrl');
  const name = `test_${process.pid}_${++count}`;
  // A third of the time that it takes by way of the WAL, which the template would have to go through.
  await runOn(serverUrl, `create database ${name} template ${source} strategy file_copy`);
  return {
    url: databaseUrl(serverUrl, name),
    alter: (option) => runOn(serverUrl, `alter database ${name} with ${option}`),
    // Autovacuum may be in it, which we may not throw out; then it goes with the server, at the end of the project.
    drop: () => runOn(serverUrl, `drop database if exists ${name} with (force)`).catch(() => undefined),
  };
}
