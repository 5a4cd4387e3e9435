import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cleanUpAfter } from '../support/cleanups.ts';
import { connectTo } from '../support/connect.ts';
import { createEmptyDatabase } from '../support/postgres.ts';
import { startS3 } from '../support/s3.ts';
import { startSystemPostgres, systemPostgres } from '../support/system-postgres.ts';
import { waitFor } from '../support/wait-for.ts';
import { preparedDataDir, runCli, startCli, startService } from './cli.ts';
import { call, jobEnded, upload, usersCsv } from './service.ts';

/** With a collation of its own where the machine has a PostgreSQL, and older than the embedded one. */
async function makeTarget(): Promise<string> {
  if (systemPostgres === undefined) {
    const database = await createEmptyDatabase();
    cleanUpAfter('test', database.drop);
    return database.url;
  }
  const server = await startSystemPostgres();
  cleanUpAfter('test', () => server.stop());
  await server.query(
    'postgres',
    `create database target template template0 encoding 'UTF8' locale 'C.UTF-8' locale_provider icu icu_locale 'de'`,
  );
  return server.urlOf('target');
}

// proves: move
test('a service moves to a PostgreSQL of its own and its files to S3 by a backup and a restore, which begins again if it was killed: keys stay, and a load under way completes there', async () => {
  const [dataDir, target, s3] = [await preparedDataDir(), await makeTarget(), await startS3()];
  cleanUpAfter('test', s3.stop);
  const env = { DATA_DIR: dataDir };
  const service = await startService(dataDir);
  const key = service.key ?? '';
  const { job_id: done } = await upload(service.url, key, usersCsv(4_000));
  expect(await jobEnded(service.url, key, done)).toMatchObject({ status: 'completed' });
  service.signal('SIGTERM');
  await service.finished;
  const [file, archive] = [join(dataDir, 'more.csv'), join(dataDir, 'move.tar.gz')];
  await writeFile(file, usersCsv(300, 'two'));
  const accepted = await runCli(['import', '--no-wait', '--json', file], { env });
  const { loads } = JSON.parse(accepted.stdout) as { loads: { job: { job_id: string } }[] };
  const underWay = loads[0]?.job.job_id ?? '';
  expect(await runCli(['backup', archive], { env })).toMatchObject({ code: 0 });

  const there = { ...s3.variables, DATABASE_URL: target };
  const killed = startCli(['restore', archive], { env: there });
  await waitFor('the restore to copy', () => isCopying(target), { everyMs: 1 });
  killed.signal('SIGKILL');
  expect(await killed.finished).toMatchObject({ code: 'SIGKILL' });
  const restored = await runCli(['restore', archive, '--json'], { env: there });
  expect(restored, restored.stderr).toMatchObject({ code: 0 });
  expect(JSON.parse(restored.stdout)).toMatchObject({ files: 2, forgotten: 0 });
  const again = await runCli(['restore', archive], { env: there });
  expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('nothing is restored over it') });

  const moved = await startService(await preparedDataDir(), there);
  expect(moved.key).toBeNull();
  expect(await jobEnded(moved.url, key, underWay)).toMatchObject({
    status: 'completed',
    counts: { read: 300 },
  });
  expect((await call(moved.url, key, '/v1/users/u1')).status).toBe(200);
});

async function isCopying(url: string): Promise<boolean> {
  const { rows } = await connectTo(url, (client) =>
    client.query(
      `select 1 from pg_stat_activity
       where datname = current_database() and application_name = 'sluice copy' and backend_xid is not null`,
    ),
  );
  return rows.length > 0;
}
