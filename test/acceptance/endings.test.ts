import { describe, expect, test } from 'vitest';
import { waitFor } from '../support/wait-for.ts';
import { preparedDataDir, startService } from './cli.ts';
import { awaitGone, descendants, serverOf, workersOf } from './processes.ts';
import { jobEnded, query, upload, usersCsv } from './service.ts';

describe('sluice start', () => {
  test('sluice start replaces a worker that dies, stops in order on SIGTERM well within its deadline, and leaves no process', async () => {
    const service = await startService(await preparedDataDir(), { WORKERS: '2' });
    const pids = async () => (await workersOf(service.pid)).map(({ pid }) => pid);
    const [victim = 0] = await waitFor('two workers', async () => {
      const alive = await pids();
      return alive.length === 2 ? alive : null;
    });
    process.kill(victim, 'SIGKILL');
    await waitFor('another worker', async () => {
      const alive = await pids();
      return alive.length === 2 && !alive.includes(victim);
    });
    const processes = await descendants(service.pid);
    const stoppedAt = performance.now();
    service.signal('SIGTERM');
    expect(await service.finished).toMatchObject({ code: 0 });
    expect(performance.now() - stoppedAt).toBeLessThan(10_000);
    await awaitGone(processes, 1_000);
    expect(service.stderr).not.toContain('connection lost');
  });

  test('sluice start that is stopped amid a load releases it, and the next start has data and key, prints no key, completes it exactly, and ends at once on a second signal', async () => {
    const dataDir = await preparedDataDir();
    const rows = 40_000;
    const first = await startService(dataDir, { CHUNK_BYTES: '64k' });
    const { job_id: jobId } = await upload(first.url, first.key, usersCsv(rows));
    await waitFor('rows', async () => (await rowsRead(dataDir, jobId)) > 0);
    first.signal('SIGINT');
    expect(await first.finished).toMatchObject({ code: 0 });
    const second = await startService(dataDir);
    expect(second.key).toBeNull();
    const job = await jobEnded(second.url, first.key, jobId);
    expect(job).toMatchObject({ status: 'completed', counts: { read: rows, inserted: rows } });
    expect(await query(dataDir, 'select count(*)::int as n from sluice.users')).toEqual([{ n: rows }]);

    const processes = await descendants(second.pid);
    for (const signal of ['SIGTERM', 'SIGTERM', 'SIGINT'] as const) second.signal(signal);
    await second.finished;
    await awaitGone(processes);
  });

  // proves: one-server
  test('sluice start restarts a database server that died on the same port, continues, and killed with -9 leaves neither a worker nor a database server', async () => {
    const dataDir = await preparedDataDir();
    const service = await startService(dataDir, { WORKERS: '2' });
    const { job_id: before } = await upload(service.url, service.key, usersCsv(100));
    await jobEnded(service.url, service.key, before);
    const server = await serverOf(service.pid);
    const [port] = await query(dataDir, 'show port');
    process.kill(server?.pid ?? 0, 'SIGQUIT');
    await awaitGone(server === undefined ? [] : [server]);
    await waitFor('another server', () => query(dataDir, 'show port'));
    expect(await query(dataDir, 'show port')).toEqual([port]);
    const { job_id: after } = await waitFor('an upload', () =>
      upload(service.url, service.key, usersCsv(200, 'two')),
    );
    expect(await jobEnded(service.url, service.key, after)).toMatchObject({
      status: 'completed',
      counts: { inserted: 100, updated: 100 },
    });
    await waitFor('two workers', async () => (await workersOf(service.pid)).length === 2);
    const processes = await descendants(service.pid);
    expect(processes.length).toBeGreaterThan(3);
    service.signal('SIGKILL');
    await awaitGone(processes);
  });
});

async function rowsRead(dataDir: string, jobId: string): Promise<number> {
  const rows = await query<{ n: number }>(
    dataDir,
    `select rows_read::int as n from sluice.loads where job_id = '${jobId}'`,
  );
  return rows[0]?.n ?? 0;
}
