import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { embeddedPostgres } from '../../../src/postgres/embedded/embedded-postgres.ts';
import { waitFor } from '../wait-for.ts';
import { type SluiceProcess, startSluice } from './processes.ts';
import { type Api, callApi, openSql, type Sql } from './site.ts';

/**
 * A running `sluice start` on a data directory, with embedded PostgreSQL, a server and two workers.
 */
export interface Service {
  readonly key: string;
  readonly process: SluiceProcess;
  readonly api: Api;
}

export interface House {
  readonly dataDir: string;
  start(): Promise<Service>;
  /** Runs another `sluice` command on the same data directory until it exits. */
  run(...args: readonly string[]): Promise<{ readonly code: string; readonly output: string }>;
  databaseUrl(): Promise<string>;
  readonly sql: Sql;
}

/**
 * Runs a test on the data directory `folder`, or on a temporary one by default. Removes the data
 * directory afterwards.
 */
export async function inHouse(run: (house: House) => Promise<void>, folder?: string): Promise<void> {
  const dataDir = folder ?? (await mkdtemp(join(tmpdir(), 'sluice-house-')));
  const variables = {
    DATA_DIR: dataDir,
    PORT: '0',
    WORKERS: '2',
    LOG_LEVEL: 'warn',
    CHUNK_BYTES: '64k',
  };
  const services: SluiceProcess[] = [];
  let key = '';
  /** Pools by the URL of the database. The URL can change when the service restarts. */
  const looks = new Map<string, { readonly pool: pg.Pool; readonly sql: Sql }>();
  const house: House = {
    dataDir,
    async start() {
      const process = startSluice(['start'], variables);
      services.push(process);
      const [, url = ''] = await process.prints(/sluice listens on (http:\S+) /);
      // The first start creates the key, and later starts use the same one.
      key ||= (await readFile(join(dataDir, 'first-key'), 'utf8')).trim();
      return { process, key, api: callApi(process, url, key) };
    },
    async run(...args) {
      const command = startSluice(args, variables);
      await waitFor(`${command.name} to end`, () => command.ending !== null);
      return { code: command.ending ?? '', output: command.output };
    },
    databaseUrl: () =>
      waitFor('the embedded Postgres', () => embeddedPostgres.findRunning(join(dataDir, 'postgres'))),
    async sql(text, values) {
      const url = await house.databaseUrl();
      const look = looks.get(url) ?? openSql(url);
      looks.set(url, look);
      return look.sql(text, values);
    },
  };
  try {
    await run(house);
  } finally {
    await Promise.all([...looks.values()].map(({ pool }) => pool.end()));
    await Promise.all(services.map((service) => stop(service)));
    await rm(dataDir, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}

/**
 * Stops a service and the database that it started. Does not resolve if the database does not stop.
 */
async function stop(service: SluiceProcess): Promise<void> {
  if (service.ending === null) await service.kill('SIGTERM');
}

export function seconds(since: number, until = performance.now()): string {
  return ((until - since) / 1000).toFixed(1);
}
