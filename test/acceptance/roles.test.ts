import { describe, expect, test } from 'vitest';
import { SMALL_LOAD_BYTES } from '../../src/load/limits.ts';
import { connectTo } from '../support/servers/connect.ts';
import { createTestDatabase } from '../support/servers/postgres.ts';
import { waitFor } from '../support/wait-for.ts';
import { preparedDataDir, startCli, startService, temporaryFolder } from './cli.ts';
import { jobEnded, query, upload, usersCsv } from './service.ts';

describe('sluice serve and sluice work', () => {
  test('sluice serve and sluice work share the database of a running start: one takes the file, the other loads it', async () => {
    const dataDir = await preparedDataDir();
    const service = await startService(dataDir, { WORKERS: '0' });
    const server = startCli(['serve', '--data-dir', dataDir]);
    const url = await waitFor('serve to be ready', () => /listens on (http:\S+)\./.exec(server.stdout)?.[1]);
    // The file is too large for the server to load, so a worker must load it.
    const file = usersCsv(10_000);
    expect(Buffer.byteLength(file)).toBeGreaterThan(SMALL_LOAD_BYTES);
    const { job_id: jobId } = await upload(url, service.key, file);
    const worker = startCli(['work', '--data-dir', dataDir]);
    expect(await jobEnded(url, service.key, jobId)).toMatchObject({ status: 'completed' });
    for (const running of [server, worker]) {
      running.signal('SIGTERM');
      expect(await running.finished).toMatchObject({ code: 0 });
    }
    expect(await query(dataDir, 'select count(*)::int as n from sluice.workers')).toEqual([{ n: 0 }]);
  });

  test('sluice work waits for a database that is not there yet, and names it', async () => {
    const dataDir = await temporaryFolder();
    const worker = startCli(['work', '--data-dir', dataDir]);
    await waitFor('the worker to say that it waits', () => worker.stderr.includes('Waiting for it'));
    expect(worker.stderr).toContain('Run `sluice start` there, or set DATABASE_URL');
    await startService(dataDir, { WORKERS: '0' });
    await waitFor('the worker to sign on', async () => {
      const rows = await query<{ pid: number }>(dataDir, 'select pid from sluice.workers');
      return rows.some(({ pid }) => pid === worker.pid);
    });
  });

  test('start, serve and work try again if the database goes away during their start, and end well if they are stopped meanwhile', async () => {
    const database = await createTestDatabase();
    const waiting = `from pg_stat_activity where application_name = 'sluice migrate' and wait_event = 'advisory'`;
    await connectTo(database.url, async (client) => {
      await client.query(`select pg_advisory_lock(${0x534c5549})`);
      const env = { DATABASE_URL: database.url, DATA_DIR: await temporaryFolder() };
      const started = ['start', 'serve', 'work'].map((role) => startCli([role], { env }));
      const ended = Promise.all(started.map(({ finished }) => finished));
      const migrating = async () => (await client.query(`select ${waiting}`)).rowCount === 3;
      await waitFor('them to migrate', migrating);
      await client.query(`select pg_terminate_backend(pid) ${waiting}`);
      const retry = 'the database went away during the start';
      await waitFor('them to notice', () => started.every(({ stderr }) => stderr.includes(retry)));
      await waitFor('them to migrate again', migrating);
      for (const { signal } of started) signal('SIGTERM');
      let isOver = false;
      void ended.then(() => (isOver = true));
      await waitFor('them to end', async () => {
        await client.query(`select pg_terminate_backend(pid) ${waiting}`);
        return isOver;
      });
      const stderr = expect.stringContaining('sluice: stopped while waiting for the database');
      expect(await ended).toMatchObject([1, 2, 3].map(() => ({ code: 0, stderr })));
    });
    await database.drop();
  });
});
