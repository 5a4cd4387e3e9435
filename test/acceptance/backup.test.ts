import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { startSystemPostgres, systemPostgres } from '../support/system-postgres.ts';
import { waitFor } from '../support/wait-for.ts';
import { type Running, startCli, temporaryFolder } from './cli.ts';
import { call, jobEnded, upload, usersCsv } from './service.ts';

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** As docs/operations.md has them; skipped where there is no PostgreSQL with pg_dump, since the embedded one has none. */
// proves: backup-moment
test.skipIf(systemPostgres === undefined)(
  'from a backup with its files a load goes on in the middle; without them it fails, says why, and holds nobody up',
  async () => {
    const [postgres, folder] = [await startSystemPostgres(), await temporaryFolder()];
    cleanups.push(() => postgres.stop());
    await postgres.query('postgres', 'create database sluice');
    const [databaseUrl, files, copy] = [
      postgres.urlOf('sluice'),
      join(folder, 'files'),
      join(folder, 'copy'),
    ];
    const service = await serve(databaseUrl, files);
    const { url, key } = service;
    const worker = work(databaseUrl, files);
    // More than a server merges itself: the worker is up when it is done.
    const { job_id: done } = await upload(url, key, usersCsv(3_000));
    expect(await jobEnded(url, key, done)).toMatchObject({ status: 'completed' });
    await stop(worker);
    // Accepted, the same users among them, when nobody is there to work: the backups find it waiting.
    const { job_id: underWay } = await upload(url, key, usersCsv(6_000, 'two'), 'more.csv');
    const [dump, base] = [postgres.scratch('sluice.dump'), postgres.scratch('base')];
    postgres.run('pg_dump', '--format=custom', `--file=${dump}`, `--dbname=${databaseUrl}`);
    postgres.run('pg_basebackup', '-D', base, '--checkpoint=fast', '--no-sync', `--dbname=${postgres.url}`);
    await cp(files, copy, { recursive: true });
    const { job_id: later } = await upload(url, key, usersCsv(10, 'three'), 'later.csv');
    await stop(service.process);

    const withFiles = async (): Promise<void> => {
      const restored = postgres.urlOf('restored');
      await postgres.query('postgres', 'create database restored');
      postgres.run('pg_restore', '--exit-on-error', '--no-owner', `--dbname=${restored}`, dump);
      const again = await serve(restored, copy, key);
      work(restored, copy);
      expect(await jobEnded(again.url, key, underWay)).toMatchObject({
        status: 'completed',
        counts: { read: 6_000, inserted: 3_000, updated: 3_000 },
      });
      expect(await jobEnded(again.url, key, done)).toMatchObject({ counts: { inserted: 3_000 } });
      expect((await call(again.url, key, `/v1/background_jobs/${later}`)).status).toBe(404);
    };
    const withoutFiles = async (): Promise<void> => {
      const restored = await startSystemPostgres(base);
      cleanups.push(() => restored.stop());
      const empty = join(folder, 'empty');
      await mkdir(empty);
      const again = await serve(restored.urlOf('sluice'), empty, key);
      work(restored.urlOf('sluice'), empty);
      expect(await jobEnded(again.url, key, underWay)).toMatchObject({
        status: 'failed',
        failure: { message: expect.stringContaining('file') },
      });
      const { job_id: next } = await upload(again.url, key, usersCsv(4_500, 'four'));
      expect(await jobEnded(again.url, key, next)).toMatchObject({
        status: 'completed',
        counts: { inserted: 1_500, updated: 3_000 },
      });
    };
    await Promise.all([withFiles(), withoutFiles()]);
  },
);

interface Service {
  readonly process: Running;
  readonly url: string;
  readonly key: string;
}

/** `key`: one that was made before; else the first one. */
async function serve(databaseUrl: string, files: string, key?: string): Promise<Service> {
  const process = startCli(['serve'], { env: { DATABASE_URL: databaseUrl, STORAGE_URL: files } });
  const url = await waitFor('serve to be ready', () => /listens on (http:\S+)\./.exec(process.stdout)?.[1], {
    timeoutMs: 60_000,
  });
  return { process, url, key: key ?? /slk_\w+/.exec(process.stdout)?.[0] ?? '' };
}

function work(databaseUrl: string, files: string): Running {
  return startCli(['work'], { env: { DATABASE_URL: databaseUrl, STORAGE_URL: files } });
}

async function stop(process: Running): Promise<void> {
  process.signal('SIGTERM');
  expect(await process.finished).toMatchObject({ code: 0 });
}
