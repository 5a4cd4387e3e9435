import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import pg from 'pg';
import { inject } from 'vitest';
import { databaseUrl } from './postgres-server.ts';

export interface TestDatabase {
  readonly url: string;
  /** Runs `alter database … with <option>`, for example to refuse new connections. */
  alter(option: string): Promise<void>;
  drop(): Promise<void>;
}

let administration: Promise<pg.Client> | undefined;

/**
 * Runs statements over one connection of this process, because opening a connection costs more than
 * most statements.
 */
async function administer(statement: string): Promise<void> {
  administration ??= connect();
  await (await administration).query(statement);
}

async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: inject('postgresUrl') });
  await client.connect();
  // The connection must not keep this process alive. pg does not document its socket.
  (client as unknown as { connection: { stream: Socket } }).connection.stream.unref();
  return client;
}

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
  // A random name is unique. A counter would start again when a test resets the modules of this
  // process.
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  // The strategy `wal_log` takes three times as long, because it writes the whole template to the
  // WAL.
  await administer(`create database ${name} template ${source} strategy file_copy`);
  return {
    url: databaseUrl(serverUrl, name),
    alter: (option) => administer(`alter database ${name} with ${option}`),
    // Dropping fails while autovacuum works in the database, because autovacuum cannot be ended.
    // The database is then removed with the server.
    drop: () => administer(`drop database if exists ${name} with (force)`).catch(() => undefined),
  };
}
