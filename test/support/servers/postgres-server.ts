import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import type { TestProject } from 'vitest/node';
import { embeddedPostgres } from '../../../src/postgres/embedded/embedded-postgres.ts';
import { prepareDatabase } from '../../../src/queue/provide-database.ts';
import { connectTo } from './connect.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** URL of the server that all test files share. Each file uses its own databases. */
    postgresUrl: string;
    /** Name of the migrated database that is copied to create each test database. */
    postgresTemplate: string;
  }
}

interface Server {
  readonly url: string;
  stop(): Promise<void>;
}

interface Shared {
  readonly server: Promise<Server>;
  users: number;
}

const log = pino({ level: 'warn' }, pino.destination({ dest: 2, sync: true }));
const template = `template_sluice_${process.pid}`;
/**
 * State that all projects share. It is global because each project imports this module separately,
 * although in the same process.
 */
const run = globalThis as { sluicePostgres?: Shared };

/**
 * Provides the server that all projects of a run share. vitest calls this before each project. To
 * use another server (such as another version), set SLUICE_TEST_POSTGRES_URL to a superuser's URL.
 * That server must allow 400 connections.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  run.sluicePostgres ??= { server: prepareServer(), users: 0 };
  const shared = run.sluicePostgres;
  shared.users++;
  const server = await shared.server;
  project.provide('postgresUrl', server.url);
  project.provide('postgresTemplate', template);
  return async () => {
    if (--shared.users === 0) await server.stop();
  };
}

async function prepareServer(): Promise<Server> {
  const url = process.env['SLUICE_TEST_POSTGRES_URL'];
  const server =
    url === undefined
      ? await startServer()
      : { url, stop: () => runOn(url, `drop database ${template} with (force)`) };
  await runOn(server.url, `create database ${template}`);
  await prepareDatabase(databaseUrl(server.url, template), true, log);
  return server;
}

async function startServer(): Promise<Server> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-test-postgres-'));
  // Without fsync, data is lost only if the machine fails, not if the server is killed.
  const settings = {
    fsync: 'off',
    full_page_writes: 'off',
    max_wal_size: '512MB',
    min_wal_size: '80MB',
    max_connections: '400',
    // PostgreSQL searches all buffers whenever a table or database is dropped, which tests do
    // often. Few buffers make this faster.
    shared_buffers: '64MB',
    autovacuum_naptime: '5min',
  };
  const postgres = await embeddedPostgres.start({ dataDir: folder, log, settings });
  return {
    url: postgres.url,
    async stop() {
      await postgres.stop();
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
    },
  };
}

export function databaseUrl(serverUrl: string, name: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}

export async function runOn(url: string, statement: string): Promise<void> {
  await connectTo(url, (client) => client.query(statement));
}
