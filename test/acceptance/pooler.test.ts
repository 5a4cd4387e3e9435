import { afterEach, describe, expect, test } from 'vitest';
import { SMALL_LOAD_BYTES } from '../../src/domain/limits.ts';
import { type PoolMode, startPgBouncer } from '../support/pgbouncer.ts';
import { createEmptyDatabase } from '../support/postgres.ts';
import { isInstalled } from '../support/system-tools.ts';
import { runCli, startService, temporaryFolder } from './cli.ts';
import { call, jobEnded, upload, usersCsv } from './service.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function openPooler(mode: PoolMode): Promise<string> {
  const database = await createEmptyDatabase();
  cleanups.push(() => database.drop());
  const pooler = await startPgBouncer(database.url, mode);
  cleanups.push(() => pooler.stop());
  return pooler.url;
}

describe.runIf(isInstalled('pgbouncer'))('PgBouncer with its defaults, the queue in PostgreSQL', () => {
  // proves: pgbouncer
  test('session pooling: the doctor is content, a load of many chunks and a record arrive', async () => {
    const env = { DATABASE_URL: await openPooler('session') };
    const dataDir = await temporaryFolder();
    const service = await startService(dataDir, env);
    const file = usersCsv(10_000);
    expect(Buffer.byteLength(file)).toBeGreaterThan(SMALL_LOAD_BYTES);
    const { job_id: jobId } = await upload(service.url, service.key, file);
    expect(await jobEnded(service.url, service.key, jobId)).toMatchObject({
      status: 'completed',
      counts: { inserted: 10_000 },
    });
    const body = JSON.stringify({ user_id: 'u1', metadata: { plan: 'pro' } });
    const headers = { 'content-type': 'application/json' };
    const sent = await call(service.url, service.key, '/v1/identify', { method: 'POST', body, headers });
    expect(sent.status).toBe(202);
    const { code, stdout } = await runCli(['doctor', '--data-dir', dataDir], { env });
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining(' 0 failed') });
    service.signal('SIGTERM');
    expect(await service.finished).toMatchObject({
      code: 0,
      stderr: expect.not.stringContaining('"level":40'),
    });
  });

  // proves: pgbouncer
  test.each(['transaction', 'statement'] as const)(
    '%s pooling is refused by every command in one sentence, before anything is written',
    async (mode) => {
      const env = { DATABASE_URL: await openPooler(mode) };
      const dataDir = await temporaryFolder();
      const sentence = 'leads to a pooler that gives every transaction another session of the server';
      for (const command of [['start'], ['serve'], ['work'], ['migrate'], ['env', 'list']]) {
        const { code, stderr } = await runCli([...command, '--data-dir', dataDir], { env });
        expect({ code, stderr }, command.join(' ')).toMatchObject({
          code: 2,
          stderr: expect.stringContaining(sentence),
        });
      }
      const { stdout, code } = await runCli(['doctor', '--data-dir', dataDir], { env });
      expect({ code, stdout }).toMatchObject({ code: 1, stdout: expect.stringContaining(sentence) });
      expect(stdout).toContain(' 1 failed');
    },
  );
});
