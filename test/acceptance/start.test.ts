import { mkdir, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { waitFor } from '../support/wait-for.ts';
import { preparedDataDir, runCli, startCli, startService, temporaryFolder } from './cli.ts';
import { awaitGone, descendants, serverOf, workersOf } from './processes.ts';
import { call, jobEnded, query, upload, usersCsv } from './service.ts';

describe('sluice start', () => {
  test('writes the first key once where standard output is no terminal, for its owner alone, and the key opens the service', async () => {
    const dataDir = await temporaryFolder();
    const service = await startService(dataDir, { LOG_LEVEL: 'trace' });
    expect(service.key).toMatch(/^slk_\w{20,}$/);
    expect((await stat(join(dataDir, 'first-key'))).mode & 0o777).toBe(0o600);
    const lines = (text: string) => text.split('\n').filter((line) => line !== '');
    const all = [...lines(service.stdout), ...lines(service.stderr)];
    expect(all.map((line) => JSON.parse(line))).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ level: 30, name: 'start', msg: expect.any(String) }),
      ]),
    );
    expect(all.join()).not.toContain(service.key);
    expect((await call(service.url, service.key, '/v1/background_jobs')).status).toBe(200);
    expect((await call(service.url, null, '/v1/background_jobs')).status).toBe(401);
  });

  test('prints the first key at a terminal, and writes no file of it', async () => {
    const dataDir = await temporaryFolder();
    const service = startCli(['start', '--data-dir', dataDir], { terminal: true });
    await waitFor('it to listen', () =>
      /^sluice listens on http:\S+ \(1 worker, ready/m.test(service.stdout),
    );
    expect(service.stdout).toMatch(/^ {4}\S*slk_\w{20,}/m);
    expect(await readdir(dataDir)).not.toContain('first-key');
    service.signal('SIGTERM');
    await service.finished;
  });

  test('goes on where the file of the first key cannot be written, and says how to make another key', async () => {
    const dataDir = await temporaryFolder();
    await mkdir(join(dataDir, 'first-key'));
    const service = await startService(dataDir);
    expect(service.key).toBeNull();
    expect(service.stdout).toMatch(
      /It is lost, since \S+first-key cannot be written: .* `sluice keys create`/,
    );
    const { stdout } = await runCli(['keys', 'create', '--data-dir', dataDir]);
    expect((await call(service.url, stdout.trim(), '/v1/background_jobs')).status).toBe(200);
  });

  test('replaces a worker that dies; stops in order on SIGTERM, well within its deadline, and leaves no process', async () => {
    const service = await startService(await preparedDataDir(), { WORKERS: '2' });
    const pids = async () => (await workersOf(service.pid)).map(({ pid }) => pid);
    const [victim = 0] = await waitFor('two workers', async () => {
      const found = await pids();
      return found.length === 2 ? found : null;
    });
    process.kill(victim, 'SIGKILL');
    await waitFor('another worker', async () => {
      const found = await pids();
      return found.length === 2 && !found.includes(victim);
    });
    const processes = await descendants(service.pid);
    const stoppedAt = performance.now();
    service.signal('SIGTERM');
    expect(await service.finished).toMatchObject({ code: 0 });
    expect(performance.now() - stoppedAt).toBeLessThan(10_000);
    await awaitGone(processes, 1_000);
  });

  test('stopped amid a load, it gives the work back; the next start has data and key, prints no second key, and completes it exactly', async () => {
    const dataDir = await preparedDataDir();
    const first = await startService(dataDir, { CHUNK_BYTES: '64k' });
    const { job_id: jobId } = await upload(first.url, first.key, usersCsv(75_000));
    await waitFor('rows', async () => (await rowsRead(dataDir, jobId)) > 0);
    first.signal('SIGINT');
    expect(await first.finished).toMatchObject({ code: 0 });
    const second = await startService(dataDir);
    expect(second.key).toBeNull();
    const job = await jobEnded(second.url, first.key, jobId);
    expect(job).toMatchObject({ status: 'completed', counts: { read: 75_000, inserted: 75_000 } });
    expect(await query(dataDir, 'select count(*)::int as n from sluice.users')).toEqual([{ n: 75_000 }]);
  });

  test('keeps no changes where CHANGES_DAYS is 0, and says so', async () => {
    const dataDir = await preparedDataDir();
    const service = await startService(dataDir, { CHANGES_DAYS: '0', LOG_LEVEL: 'warn' });
    expect(await query(dataDir, 'select complete_since from sluice.change_log')).toEqual([
      { complete_since: null },
    ]);
    expect(service.stderr).toContain('changes are no longer kept');
  });

  test('a second signal ends it at once', async () => {
    const service = await startService(await preparedDataDir());
    const processes = await descendants(service.pid);
    service.signal('SIGTERM');
    service.signal('SIGTERM');
    service.signal('SIGINT');
    await service.finished;
    await awaitGone(processes);
  });

  // proves: one-server
  test('killed with -9, it leaves neither a worker nor a database server behind', async () => {
    const service = await startService(await preparedDataDir(), { WORKERS: '2' });
    await waitFor('two workers', async () => (await workersOf(service.pid)).length === 2);
    const processes = await descendants(service.pid);
    expect(processes.length).toBeGreaterThan(3);
    service.signal('SIGKILL');
    await awaitGone(processes);
  });

  test('refuses a data directory that another one uses, and says so', async () => {
    const dataDir = await preparedDataDir();
    const service = await startService(dataDir);
    const second = await runCli(['start', '--data-dir', dataDir]);
    expect(second.code).toBe(1);
    expect(second.stderr).toContain(`process ${service.pid}. Stop that one`);
    expect((await call(service.url, service.key, '/v1/background_jobs')).status).toBe(200);
  });

  test('brings a database server that dies back on the same port and goes on', async () => {
    const dataDir = await preparedDataDir();
    const service = await startService(dataDir);
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
  });
});

async function rowsRead(dataDir: string, jobId: string): Promise<number> {
  const rows = await query<{ n: number }>(
    dataDir,
    `select rows_read::int as n from sluice.loads where job_id = '${jobId}'`,
  );
  return rows[0]?.n ?? 0;
}
