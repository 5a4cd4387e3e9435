import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { pino } from 'pino';
import { ensureFirstKey } from '../../../src/access/acts.ts';
import { createEnvironment, findEnvironment } from '../../../src/access/environment-store.ts';
import { createApiKey } from '../../../src/access/key-store.ts';
import { Acts } from '../../../src/postgres/acts.ts';
import { createDatabase } from '../../../src/postgres/database.ts';
import { createPool } from '../../../src/postgres/pool.ts';
import { prepareDatabase } from '../../../src/queue/provide-database.ts';
import { waitFor } from '../wait-for.ts';
import { createTestDatabase } from './postgres.ts';
import { type PrivatePostgres, startPrivatePostgres } from './private-postgres.ts';
import { type SluiceProcess, startSluice } from './processes.ts';
import { redisAvailable, startRedis, type TestRedis } from './redis.ts';

export type Queue = 'postgres' | 'redis';
export const queues: readonly Queue[] = redisAvailable ? ['postgres', 'redis'] : ['postgres'];
/**
 * The queue for tests that do not depend on the kind of queue: Redis if it is installed, as in
 * production.
 */
export const anyQueue: Queue = redisAvailable ? 'redis' : 'postgres';

/**
 * Returns only the preferred queue, for tests of faults that hardly depend on the queue. With
 * SLUICE_LARGE=1, returns both queues.
 */
export function oneQueue(preferred: Queue): readonly Queue[] {
  return process.env['SLUICE_LARGE'] !== '1' && queues.includes(preferred) ? [preferred] : queues;
}

interface SiteOptions {
  readonly queue: Queue;
  /**
   * Whether the test gets its own PostgreSQL server, which it may stop and start. Default: a
   * database on the shared server.
   */
  readonly privatePostgres?: boolean;
  readonly settings?: Readonly<Record<string, string>>;
}

/**
 * A database, a queue and a folder, set up as an operator would set them up. Tests run real
 * processes of the service on it.
 */
export interface Site {
  readonly queue: Queue;
  readonly key: string;
  readonly environmentId: number;
  readonly databaseUrl: string;
  /** DATA_DIR of the site, unless the settings name another folder. */
  readonly dataDir: string;
  /** Adds an environment with a key. Returns the environment's id and the key. */
  addEnvironment(name: string): Promise<{ readonly environmentId: number; readonly key: string }>;
  readonly sql: Sql;
  /** The Redis server of the site. `null` unless the queue is Redis. */
  readonly redis: TestRedis | null;
  /** The PostgreSQL server that only this site uses. `null` unless the options ask for one. */
  readonly postgres: PrivatePostgres | null;
  /**
   * Starts `sluice serve` with the settings of the site and `settings`. Resolves when it listens.
   */
  serve(settings?: Readonly<Record<string, string>>, output?: { readonly stderr?: number }): Promise<Api>;
  /** Starts `sluice work`. Resolves when the worker is ready for tasks. */
  work(
    settings?: Readonly<Record<string, string>>,
    output?: { readonly stderr?: number },
  ): Promise<SluiceProcess>;
  workers(count: number): Promise<SluiceProcess[]>;
  killWorkers(): Promise<void>;
  /**
   * Expires all leases, as if killed workers had sent no heartbeat for too long. Without this
   * function, a test would have to wait until the leases expire. killed-workers.test.ts measures
   * this wait.
   */
  expireLeases(): Promise<void>;
  close(): Promise<void>;
}

/** Values of type int8 are converted to numbers. */
export type Sql = <Row extends object>(text: string, values?: readonly unknown[]) => Promise<Row[]>;

export interface Api {
  readonly process: SluiceProcess;
  readonly url: string;
  fetch(path: string, options?: RequestInit): Promise<Response>;
  /** Uploads a file of users. Returns the id of the load's job. */
  upload(csv: Buffer): Promise<string>;
  post(path: string): Promise<number>;
}

const requestDeadlineMs = 60_000;

export function callApi(process: SluiceProcess, url: string, key: string): Api {
  const call: Api['fetch'] = (path, options = {}) =>
    fetch(new URL(path, url), {
      signal: AbortSignal.timeout(requestDeadlineMs),
      ...options,
      headers: { authorization: `Token ${key}`, ...options.headers },
    });
  return {
    process,
    url,
    fetch: call,
    async upload(csv) {
      const headers = { 'content-type': 'text/csv' };
      const response = await call('/v1/imports', { method: 'POST', body: new Uint8Array(csv), headers });
      const text = await response.text();
      if (response.status !== 200) throw new Error(`the upload was answered ${response.status}: ${text}`);
      return (JSON.parse(text) as { job_id: string }).job_id;
    },
    async post(path) {
      const response = await call(path, { method: 'POST' });
      await response.arrayBuffer();
      return response.status;
    },
  };
}

/** Runs `run` on a new site. Removes the site even if the test fails. */
export async function onSite(options: SiteOptions, run: (site: Site) => Promise<void>): Promise<void> {
  const site = await openSite(options);
  try {
    await run(site);
  } finally {
    await site.close();
  }
}

async function openSite({ queue, privatePostgres = false, settings = {} }: SiteOptions): Promise<Site> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-site-'));
  const postgres = privatePostgres ? await startPrivatePostgres() : null;
  const database = postgres === null ? await createTestDatabase() : null;
  const databaseUrl = postgres?.url ?? database?.url ?? '';
  const redis = queue === 'redis' ? await startRedis() : null;
  if (postgres !== null) await prepareDatabase(databaseUrl, redis === null, pino({ level: 'silent' }));
  const { pool, sql } = openSql(databaseUrl);
  const first = { db: createDatabase(pool), acts: new Acts([]) };
  const key = await ensureFirstKey(first);
  const environment = await findEnvironment(first.db, 'default');
  if (key === null || environment === null) throw new Error('the database was not empty');
  const variables: Record<string, string> = {
    DATABASE_URL: databaseUrl,
    DATA_DIR: folder,
    PORT: '0',
    LOG_LEVEL: 'warn',
    // The server must not refuse requests, even though other tests keep the machine busy.
    MAX_EVENT_LOOP_DELAY_MS: '0',
    CHUNK_BYTES: '64k',
    ...(redis === null ? {} : { REDIS_URL: redis.url }),
    ...settings,
  };
  const processes: SluiceProcess[] = [];
  const working: SluiceProcess[] = [];
  const site: Site = {
    queue,
    key,
    environmentId: environment.environmentId,
    databaseUrl,
    dataDir: variables['DATA_DIR'] ?? folder,
    sql,
    async addEnvironment(name) {
      const db = createDatabase(pool);
      const { environmentId } = await createEnvironment(db, name);
      const { key: another } = await createApiKey(db, environmentId, { label: 'test' });
      return { environmentId, key: another };
    },
    redis,
    postgres,
    async serve(more = {}, output = {}) {
      const process = startSluice(['serve'], { ...variables, ...more }, output);
      processes.push(process);
      const [, url = ''] = await process.prints(/sluice listens on (http:\S+)\. /);
      return callApi(process, url, key);
    },
    async work(more = {}, output = {}) {
      const process = startSluice(['work'], { ...variables, ...more }, output);
      processes.push(process);
      working.push(process);
      await waitFor(`${process.name} to show its life; it said ${process.output}`, async () => {
        const rows = await sql('select from sluice.workers where pid = $1', [process.pid]);
        return rows.length > 0;
      });
      return process;
    },
    async killWorkers() {
      await Promise.all(working.splice(0).map((process) => process.killGroup()));
    },
    async expireLeases() {
      await sql("update sluice.tasks set lease_until = now() - interval '1 s' where lease_until is not null");
    },
    workers: (count) => Promise.all(Array.from({ length: count }, () => site.work())),
    async close() {
      await Promise.all(processes.map((process) => process.kill('SIGKILL')));
      await pool.end();
      await redis?.stop();
      // PostgreSQL refuses to drop a database while autovacuum is in it.
      await waitFor('the database to be dropped', async () => {
        await database?.drop();
        return true;
      });
      await postgres?.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
  return site;
}

export function openSql(url: string): { readonly pool: pg.Pool; readonly sql: Sql } {
  const pool = createPool({ url, max: 5, applicationName: 'test' });
  pool.on('error', () => undefined);
  const sql = async <Row extends object>(text: string, values: readonly unknown[] = []): Promise<Row[]> => {
    const { rows } = await pool.query<Row>(text, [...values]);
    return rows;
  };
  return { pool, sql };
}

/**
 * Keeps an uncommitted insert of the user `key` until the returned function is called. A worker
 * that writes this user waits within the transaction of its chunk.
 */
export async function brakeAt(site: Site, key: string): Promise<() => Promise<void>> {
  return hold(site, 'insert into sluice.users (environment_id, user_id) values ($1, $2)', [
    site.environmentId,
    key,
  ]);
}

/** Runs a statement in a transaction and holds its locks until the returned function is called. */
export async function hold(
  site: Site,
  text: string,
  values: readonly unknown[] = [],
): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: site.databaseUrl, application_name: 'test brake' });
  client.on('error', () => undefined);
  await client.connect();
  await client.query('begin');
  await client.query(text, [...values]);
  return async () => {
    await client.query('rollback').catch(() => undefined);
    await client.end();
  };
}

/**
 * Locks the task of a chunk until the returned function is called. Until then, workers skip the
 * chunk and claim the next one.
 */
export async function holdChunk(site: Site, jobId: string, chunkNo: number): Promise<() => Promise<void>> {
  const ofChunk = "from sluice.tasks where kind = 'chunk' and job_id = $1 and part = $2";
  await waitFor('the load to be started', async () => {
    return (await site.sql(`select ${ofChunk}`, [jobId, chunkNo])).length > 0;
  });
  return hold(site, `select ${ofChunk} for no key update`, [jobId, chunkNo]);
}

/** Returns the name of a session that works on `what` and meets the condition, or `null`. */
export async function workingSession(
  sql: Sql,
  what: 'chunk' | 'finish' | 'export',
  condition = 'true',
): Promise<string | null> {
  const [session] = await sql<{ name: string }>(
    `select application_name as name from pg_stat_activity
     where datname = current_database() and application_name like 'sluice ${what} %' and ${condition}`,
  );
  return session?.name ?? null;
}
