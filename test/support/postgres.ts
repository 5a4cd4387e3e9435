import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll } from 'vitest';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/postgres/embedded/start.ts';
import { prepareDatabase } from '../../src/postgres/prepare.ts';

/**
 * One real server per test file (vitest gives each a process of its own), started by the first database that is asked
 * for, ended after the file's own hooks. Databases are copies of a migrated template, some 50 ms each.
 */
interface TestServer {
  readonly postgres: EmbeddedPostgres;
  readonly folder: string;
  /** Databases made so far. */
  count: number;
}

export interface TestDatabase {
  readonly url: string;
  /** `alter database … with <option>`, for instance to close it to newcomers. */
  alter(option: string): Promise<void>;
  /** Throws everybody out and removes it. */
  drop(): Promise<void>;
}

const template = 'template_sluice';
const log = pino({ level: 'warn' }, pino.destination({ dest: 2, sync: true }));
let server: Promise<TestServer> | undefined;

afterAll(async () => {
  if (server === undefined) return;
  const { postgres, folder } = await server;
  server = undefined;
  await postgres.stop();
  await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
});

/** A database of its own, with both schemas (ours, the queue's) and nothing in them. */
export function createTestDatabase(): Promise<TestDatabase> {
  return createFrom(template);
}

/** A database with nothing in it, as before the first start. */
export function createEmptyDatabase(): Promise<TestDatabase> {
  return createFrom('template0');
}

async function createFrom(source: string): Promise<TestDatabase> {
  server ??= startServer();
  const running = await server;
  const name = `test_${++running.count}`;
  await runOn(running.postgres.url, `create database ${name} template ${source}`);
  return {
    url: databaseUrl(running.postgres.url, name),
    alter: (option) => runOn(running.postgres.url, `alter database ${name} with ${option}`),
    // Autovacuum may be in it, which we may not throw out; then it goes with the server, at the end of the file.
    drop: () =>
      runOn(running.postgres.url, `drop database if exists ${name} with (force)`).catch(() => undefined),
  };
}

async function startServer(): Promise<TestServer> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-test-postgres-'));
  // A killed server loses nothing without fsync, only a killed machine does.
  const settings = { fsync: 'off', max_connections: '200' };
  const postgres = await startEmbeddedPostgres({ dataDir: folder, log, settings });
  await runOn(postgres.url, `create database ${template}`);
  await prepareDatabase(databaseUrl(postgres.url, template), true, log);
  return { postgres, folder, count: 0 };
}

function databaseUrl(serverUrl: string, name: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}

async function runOn(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
