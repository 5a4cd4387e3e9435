import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import type { TestProject } from 'vitest/node';
import { embeddedPostgres } from '../../src/postgres/embedded/embedded-postgres.ts';
import { prepareDatabase } from '../../src/queue/provide-database.ts';
import { connectTo } from './connect.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Of the one real server that the files of a project share, each with databases of its own. */
    postgresUrl: string;
    /** Databases of tests are copies of this one, which is migrated. */
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
/** Each project imports this module anew, into the same process. */
const run = globalThis as { sluicePostgres?: Shared };

/**
 * Run by vitest before the files of a project; what it returns, after them. All projects of a run share one server.
 * SLUICE_TEST_POSTGRES_URL names a superuser of another one to be used, of another version for instance; it needs 400
 * connections.
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
  const given = process.env['SLUICE_TEST_POSTGRES_URL'];
  const server =
    given === undefined
      ? await startServer()
      : { url: given, stop: () => runOn(given, `drop database ${template} with (force)`) };
  await runOn(server.url, `create database ${template}`);
  await prepareDatabase(databaseUrl(server.url, template), true, log);
  return server;
}

async function startServer(): Promise<Server> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-test-postgres-'));
  // A killed server loses nothing without fsync and tears no page, only a killed machine does.
  const settings = {
    fsync: 'off',
    full_page_writes: 'off',
    max_wal_size: '512MB',
    min_wal_size: '80MB',
    max_connections: '400',
    // What is looked through whenever a table or a database goes.
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
