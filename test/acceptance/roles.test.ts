import { describe, expect, test } from 'vitest';
import { SMALL_LOAD_BYTES } from '../../src/domain/limits.ts';
import { waitFor } from '../support/wait-for.ts';
import { startCli, startService, temporaryFolder } from './cli.ts';
import { jobEnded, query, upload, usersCsv } from './service.ts';

describe('sluice serve and sluice work', () => {
  test('share the database of a running start: one takes the file, the other loads it', async () => {
    const dataDir = await temporaryFolder();
    const service = await startService(dataDir, { WORKERS: '0' });
    const server = startCli(['serve', '--data-dir', dataDir]);
    const url = await waitFor('serve to be ready', () => /listens on (http:\S+)\./.exec(server.stdout)?.[1]);
    // Larger than what a server merges itself.
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

  test('wait for a database that is not there yet, and say what they wait for', async () => {
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
});
