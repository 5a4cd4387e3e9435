import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Logger, pino } from 'pino';
import { afterAll } from 'vitest';
import { type RunningWorker, startWorker } from '../../../jobs/worker.ts';
import { ensureFirstKey } from '../../../src/access/acts.ts';
import { createEnvironment, findEnvironment } from '../../../src/access/environment-store.ts';
import { createApiKey } from '../../../src/access/key-store.ts';
import { type Config, readConfig } from '../../../src/base/config.ts';
import type { System } from '../../../src/context.ts';
import type { Environment } from '../../../src/domain/caller.ts';
import { endedStatuses } from '../../../src/domain/load.ts';
import type { ExportWriter } from '../../../src/export/context.ts';
import { type Load, requireLoad } from '../../../src/load/read-store.ts';
import { Acts } from '../../../src/postgres/acts.ts';
import { openSystem } from '../../../src/processes/open-system.ts';
import { patienceMs, waitFor } from '../wait-for.ts';
import { createTestDatabase } from './postgres.ts';
import { startRedis, type TestRedis } from './redis.ts';
import type { TestS3 } from './s3.ts';

export interface TestSystemOptions {
  /**
   * Where to keep the queue. `redis` requires `redisAvailable`. Default: the queue that the vitest
   * project sets, else `postgres`.
   */
  readonly queue?: 'postgres' | 'redis';
  /**
   * Where to store files. Default: the storage that the vitest project sets, else `folder`. With
   * `s3`, the service signs links only if a setting enables signing.
   */
  readonly storage?: 'folder' | 's3';
  readonly settings?: Readonly<Record<string, string>>;
  readonly worker?: boolean;
  readonly log?: Logger;
}

/** A complete system with its own database, folder and queue. */
export interface TestSystem extends Tenant {
  readonly system: System;
  readonly config: Config;
  readonly databaseUrl: string;
  /** Environment variables for child processes, such as the CLI, that use the same system. */
  readonly variables: Readonly<Record<string, string>>;
  /** The Redis server of the system. `null` unless the queue is Redis. */
  readonly redis: TestRedis | null;
  /** The S3 server of the system. `null` unless the storage is S3. */
  readonly s3: TestS3 | null;
  /** Starts another worker in this process, with its own connections. `close` stops it. */
  startWorker(write?: ExportWriter): RunningWorker;
  /**
   * Opens a second system on the same data, as another process would. Close the second system
   * before the first.
   */
  openAnother(options?: { readonly databaseUrl?: string }): System;
  addEnvironment(name: string): Promise<Tenant>;
  /** Returns the files below DATA_DIR/files or in the bucket, including unfinished ones. */
  storedFiles(): Promise<string[]>;
  ended(jobId: string, options?: { readonly timeoutMs?: number }): Promise<Load>;
  /** Stops the workers, closes all connections, and removes all data. */
  close(): Promise<void>;
}

export interface Tenant {
  readonly environment: Environment;
  readonly key: string;
}

/** Opens a system and closes it after the test file. Call this once, at the top of the file. */
export async function systemOfFile(options?: TestSystemOptions): Promise<TestSystem> {
  const t = await openTestSystem(options);
  afterAll(() => t.close());
  return t;
}

/** Opens a system. The caller closes it in `afterAll` or `afterEach`. */
export async function openTestSystem(options: TestSystemOptions = {}): Promise<TestSystem> {
  const database = await createTestDatabase();
  const dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-data-'));
  const queue = options.queue ?? (process.env['SLUICE_TEST_QUEUE'] === 'redis' ? 'redis' : 'postgres');
  const redis = queue === 'redis' ? await startRedis() : null;
  const storage = options.storage ?? (process.env['SLUICE_TEST_STORAGE'] === 's3' ? 's3' : 'folder');
  // s3.ts is imported only if it is needed. It loads the AWS SDK, which takes a second of processor
  // time in each worker of vitest.
  const s3 = storage === 's3' ? await (await import('./s3.ts')).startS3() : null;
  const variables: Record<string, string> = {
    DATABASE_URL: database.url,
    DATA_DIR: dataDir,
    PORT: '0',
    LOG_LEVEL: 'silent',
    // The server must not refuse requests, even though other tests keep the machine busy.
    MAX_EVENT_LOOP_DELAY_MS: '0',
    ...(redis === null ? {} : { REDIS_URL: redis.url }),
    ...(s3 === null ? {} : { ...s3.variables, STORAGE_PRESIGN: 'false' }),
    ...options.settings,
  };
  const config = readConfig(variables);
  const log = options.log ?? pino({ level: config.logLevel });
  const open = (role: string, poolSize: number, databaseUrl = database.url): System =>
    openSystem({ config, databaseUrl, log, role, poolSize, readPoolSize: 2 });
  const system = open('test', config.poolSize);
  const tenant = await createFirstTenant(system);
  const closings: (() => Promise<void>)[] = [];
  const test: TestSystem = {
    system,
    config,
    databaseUrl: database.url,
    variables,
    redis,
    s3,
    ...tenant,
    startWorker(write) {
      const workerSystem = open('test worker', config.workerPoolSize);
      const worker = startWorker(
        write === undefined ? workerSystem : { ...workerSystem, writeExport: write },
      );
      let stopping: Promise<void> | undefined;
      const stop = () => {
        stopping ??= worker.stop().then(() => workerSystem.close());
        return stopping;
      };
      closings.push(stop);
      return { stop };
    },
    openAnother: ({ databaseUrl } = {}) => open('test', config.poolSize, databaseUrl),
    addEnvironment: (name) => createTenant(system, name),
    storedFiles: async () =>
      s3 === null ? listFiles(config.filesDir) : [...(await s3.objects()), ...(await s3.uploads())],
    ended: (jobId, { timeoutMs = patienceMs } = {}) => awaitEnd(system, tenant.environment, jobId, timeoutMs),
    async close() {
      for (const closing of closings.splice(0).reverse()) await closing();
      await system.close();
      await redis?.stop();
      await s3?.stop();
      await database.drop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
  if (options.worker === true) test.startWorker();
  return test;
}

async function createFirstTenant({ db }: System): Promise<Tenant> {
  const key = await ensureFirstKey({ db, acts: new Acts([]) });
  const environment = await findEnvironment(db, 'default');
  if (key === null || environment === null) throw new Error('the test database was not empty');
  return { environment, key };
}

async function createTenant({ db }: System, name: string): Promise<Tenant> {
  const environment = await createEnvironment(db, name);
  const { key } = await createApiKey(db, environment.environmentId, { label: 'test' });
  return { environment, key };
}

async function listFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

async function awaitEnd(
  system: System,
  { environmentId }: Environment,
  jobId: string,
  timeoutMs: number,
): Promise<Load> {
  let last = 'nothing';
  try {
    return await waitFor(
      `job ${jobId} to end`,
      async () => {
        const load = await requireLoad(system, environmentId, jobId);
        last = JSON.stringify(load);
        return (endedStatuses as readonly string[]).includes(load.status) ? load : null;
      },
      { timeoutMs },
    );
  } catch (error) {
    throw new Error(`job ${jobId} did not end; it was ${last}`, { cause: error });
  }
}
