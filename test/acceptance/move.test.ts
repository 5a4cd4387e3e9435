import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, expect, test } from 'vitest';
import { createCertificates } from '../support/certificates.ts';
import { createEmptyDatabase } from '../support/postgres.ts';
import { runOn } from '../support/postgres-server.ts';
import { redisAvailable } from '../support/redis.ts';
import { startTlsRedis } from '../support/redis-fleet.ts';
import { startS3 } from '../support/s3.ts';
import { startSystemPostgres, systemPostgres } from '../support/system-postgres.ts';
import { waitFor } from '../support/wait-for.ts';
import { preparedDataDir, runCli, startCli, startService } from './cli.ts';
import { call, jobEnded, upload, usersCsv } from './service.ts';

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** With a collation of its own where the machine has a PostgreSQL, and older than the embedded one. */
async function makeTarget(): Promise<string> {
  if (systemPostgres === undefined) {
    const database = await createEmptyDatabase();
    cleanups.push(database.drop);
    return database.url;
  }
  const server = await startSystemPostgres();
  cleanups.push(() => server.stop());
  await server.query(
    'postgres',
    `create database target template template0 encoding 'UTF8' locale 'C.UTF-8' locale_provider icu icu_locale 'de'`,
  );
  return server.urlOf('target');
}

// proves: move
test('a service moves to a PostgreSQL of its own, its files to S3 and its queue to Redis: stopped, killed as it moved, moved, started there with its keys, its load done, its old data shut', async () => {
  const [dataDir, target] = [await preparedDataDir(), await makeTarget()];
  const [secret, env] = [join(dataDir, 'target-url'), { DATA_DIR: dataDir }];
  await writeFile(secret, `${target}\n`);
  const move = (...args: readonly string[]) => ['move', ...args];
  const s3 = await startS3();
  cleanups.push(s3.stop);
  const { STORAGE_URL: bucket = '', ...s3Keys } = s3.variables;
  const queue = await queueOnRedis();
  const toTarget = {
    ...{ ...env, ...s3Keys, MOVE_TO_FILE: secret, MOVE_FILES: bucket },
    ...(queue !== null && { MOVE_REDIS: queue.REDIS_URL, REDIS_TLS_CA: queue.REDIS_TLS_CA }),
  };

  const service = await startService(dataDir);
  const { url, key } = service;
  const { job_id: done } = await upload(url, key ?? '', usersCsv(4_000));
  expect(await jobEnded(url, key ?? '', done)).toMatchObject({ status: 'completed' });
  const misspelt = await runCli(move('--to', 'postgers://db/sluice'), { env });
  expect(misspelt).toMatchObject({ code: 2, stderr: expect.stringContaining('MOVE_TO: must be') });
  const refused = await runCli(move(), { env: toTarget });
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('Stop the service on') });
  service.signal('SIGTERM');
  await service.finished;

  const file = join(dataDir, 'more.csv');
  await writeFile(file, usersCsv(300, 'two'));
  const accepted = await runCli(['import', '--no-wait', '--json', file], { env });
  const underWay =
    (JSON.parse(accepted.stdout) as { loads: { job: { job_id: string } }[] }).loads[0]?.job.job_id ?? '';
  const killed = async (isUnderWay: () => boolean | Promise<boolean>): Promise<void> => {
    const running = startCli(move(), { env: toTarget });
    await waitFor('the move to write', isUnderWay, { everyMs: 1 });
    running.signal('SIGKILL');
    expect(await running.finished).toMatchObject({ code: 'SIGKILL' });
  };
  await killed(() => s3.requests.some((request) => request.startsWith('PUT')));
  await killed(() => isCopying(target));

  const moved = await runCli(move('--json'), { env: toTarget });
  expect(moved, moved.stderr).toMatchObject({ code: 0 });
  expect(JSON.parse(moved.stdout)).toMatchObject({
    status: 'moved',
    settings: {
      ...(queue !== null && { REDIS_URL: queue.REDIS_URL }),
      ...{ DATABASE_URL: expect.any(String), STORAGE_URL: bucket },
    },
    files: { files: 2 },
  });
  const shut = await runCli(['start'], { env });
  expect(shut).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('set DATABASE_URL to that database'),
  });
  expect(await runCli(move(), { env: toTarget })).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/already.*DATABASE_URL=.*STORAGE_URL=s3:/s),
  });

  // Nothing of the old files is there any more for the load that goes on.
  await rename(join(dataDir, 'files'), join(dataDir, 'files.old'));
  const there = await startService(dataDir, { ...s3.variables, ...queue, DATABASE_URL: target });
  expect(there.key).toBeNull();
  expect(await jobEnded(there.url, key ?? '', underWay)).toMatchObject({
    status: 'completed',
    counts: { read: 300 },
  });
  expect((await call(there.url, key ?? '', '/v1/users/u1')).status).toBe(200);
  there.signal('SIGTERM');
  await there.finished;
  await rename(join(dataDir, 'files.old'), join(dataDir, 'files'));

  await runOn(target, 'alter schema sluice rename to elsewhere');
  expect(await runCli(move(), { env: toTarget })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('nothing of it is there now'),
  });
  expect(await runCli(move('--undo'), { env })).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('can be started again'),
  });
  const back = await startService(dataDir);
  expect(await jobEnded(back.url, key ?? '', underWay)).toMatchObject({ status: 'completed' });
});

/** The settings of a Redis of its own whose certificate a private authority signed, where the machine has one. */
async function queueOnRedis() {
  if (!redisAvailable) return null;
  const certificates = await createCertificates();
  const redis = await startTlsRedis(certificates);
  cleanups.push(() => certificates.remove(), redis.stop);
  return { REDIS_URL: redis.url, REDIS_TLS_CA: certificates.caFile };
}

async function isCopying(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  try {
    await client.connect();
    const { rows } = await client.query(
      `select 1 from pg_stat_activity
       where datname = current_database() and application_name = 'sluice copy' and backend_xid is not null`,
    );
    return rows.length > 0;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}
