import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { describe, expect, test } from 'vitest';
import { findRunningPostgres } from '../../src/postgres/embedded/find-running.ts';
import { expectExact, progressed, report } from '../support/exactness.ts';
import { signalPostmaster } from '../support/private-postgres.ts';
import { type SluiceProcess, startSluice } from '../support/processes.ts';
import { createProfileFile, oracleOf } from '../support/profile-file.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { type Api, callApi, openSql, type Queue, queues, type Sql } from '../support/site.ts';
import { waitFor } from '../support/wait-for.ts';

const file = createProfileFile({ rows: 60_000, seed: 5 });
const table = oracleOf(file);

/** `sluice start` on a data directory: embedded Postgres, HTTP server, two workers. */
interface Service {
  readonly process: SluiceProcess;
  readonly api: Api;
}

interface House {
  readonly queue: Queue;
  readonly dataDir: string;
  start(): Promise<Service>;
  /** Looks into the embedded database, wherever it runs now. */
  readonly sql: Sql;
}

describe.concurrent.each(queues)('with the queue on %s', (queue) => {
  test('a service that is killed with all its processes goes on by itself when it is started again, and is exact', async () => {
    await inHouse(queue, async (house) => {
      const { process, api } = await house.start();
      const jobId = await api.upload(file.bytes);
      await progressed(house.sql, jobId, 0.4);
      // The postmaster has a process group of its own; it goes at the same moment.
      await signalPostmaster(join(house.dataDir, 'postgres'), 'SIGKILL');
      await process.killGroup();
      const killedAt = performance.now();
      await house.start();
      const startedAt = performance.now();
      const load = await expectExact(house.sql, jobId, file, table);
      report(
        `whole service killed, ${queue}: listening ${seconds(killedAt, startedAt)} s after the kill, load done ${seconds(startedAt)} s later (${load.seconds.toFixed(1)} s in all)`,
      );
    });
  });

  test('a service whose embedded Postgres is killed in the middle of a load starts it again, and is exact', async () => {
    await inHouse(queue, async (house) => {
      const { api } = await house.start();
      const jobId = await api.upload(file.bytes);
      for (const [share, signal] of [
        [0.3, 'SIGQUIT'],
        [0.6, 'SIGKILL'],
      ] as const) {
        await progressed(house.sql, jobId, share);
        const gone = await signalPostmaster(join(house.dataDir, 'postgres'), signal);
        await gone();
        const killedAt = performance.now();
        await waitFor('the service to answer again', async () => {
          const { status } = await api.fetch(`/v1/background_jobs/${jobId}`);
          expect([200, 503]).toContain(status);
          return status === 200;
        });
        report(`embedded Postgres ${signal}, ${queue}: the API is back after ${seconds(killedAt)} s`);
      }
      const load = await expectExact(house.sql, jobId, file, table);
      report(`embedded Postgres killed twice, ${queue}: load ${load.seconds.toFixed(1)} s`);
    });
  });
});

async function inHouse(queue: Queue, run: (house: House) => Promise<void>): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'sluice-house-'));
  const redis: TestRedis | null = queue === 'redis' ? await startRedis() : null;
  const variables = {
    DATA_DIR: dataDir,
    PORT: '0',
    WORKERS: '2',
    LOG_LEVEL: 'warn',
    CHUNK_BYTES: '64k',
    ...(redis === null ? {} : { REDIS_URL: redis.url }),
  };
  const services: SluiceProcess[] = [];
  let key = '';
  /** By the address of the database, which may change with a start. */
  const looks = new Map<string, { readonly pool: pg.Pool; readonly sql: Sql }>();
  const house: House = {
    queue,
    dataDir,
    async start() {
      const process = startSluice(['start'], variables);
      services.push(process);
      const [, url = ''] = await process.says(/sluice listens on (http:\S+) /, 60_000);
      // Told once, by the first start.
      key = /^ {4}(\S{20,})$/m.exec(process.output)?.[1] ?? key;
      return { process, api: callApi(process, url, key) };
    },
    async sql(text, values) {
      const url = await waitFor('the embedded Postgres', () =>
        findRunningPostgres(join(dataDir, 'postgres')),
      );
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
    await redis?.stop();
    await rm(dataDir, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}

/** The database goes with its service, by its own means; waiting for it shows that it does. */
async function stop(service: SluiceProcess): Promise<void> {
  if (service.ending === null) await service.kill('SIGTERM');
}

function seconds(since: number, until = performance.now()): string {
  return ((until - since) / 1000).toFixed(1);
}
