import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { type SystemPostgres, startSystemPostgres, systemPostgres } from '../support/system-postgres.ts';
import { waitFor } from '../support/wait-for.ts';
import { type Running, startCli, temporaryFolder } from './cli.ts';
import { call, jobEnded, upload, usersCsv } from './service.ts';

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** As docs/operations.md has them; skipped where there is no PostgreSQL with pg_dump, since the embedded one has none. */
describe.skipIf(systemPostgres === undefined)('backup and restore', () => {
  test('pg_dump, then the files: what was under way goes on, what came later is gone', async () => {
    const [postgres, folder] = [await start(), await temporaryFolder()];
    const [databaseUrl, files] = [postgres.urlOf('sluice'), join(folder, 'files')];
    const service = await serve(databaseUrl, files);
    const { key } = service;
    const { done, underWay } = await loadOneAcceptAnother(databaseUrl, files, service);

    const dump = postgres.scratch('sluice.dump');
    postgres.run('pg_dump', '--format=custom', `--file=${dump}`, `--dbname=${databaseUrl}`);
    await cp(files, join(folder, 'copy'), { recursive: true });
    const { job_id: later } = await upload(service.url, key, usersCsv(10, 'three'), 'later.csv');
    await stop(service.process);

    const restored = postgres.urlOf('restored');
    await postgres.query('postgres', 'create database restored');
    postgres.run('pg_restore', '--exit-on-error', '--no-owner', `--dbname=${restored}`, dump);
    const again = await serve(restored, join(folder, 'copy'), key);
    work(restored, join(folder, 'copy'));
    expect(await jobEnded(again.url, key, underWay)).toMatchObject({
      status: 'completed',
      counts: { read: 3_000, inserted: 2_000, updated: 1_000 },
    });
    expect(await jobEnded(again.url, key, done)).toMatchObject({ counts: { inserted: 1_000 } });
    expect((await call(again.url, key, `/v1/background_jobs/${later}`)).status).toBe(404);
  });

  test('pg_basebackup without the files: what was loaded is there, what was under way fails and says why', async () => {
    const [postgres, folder] = [await start(), await temporaryFolder()];
    const [databaseUrl, files] = [postgres.urlOf('sluice'), join(folder, 'files')];
    const service = await serve(databaseUrl, files);
    const { key } = service;
    const { underWay } = await loadOneAcceptAnother(databaseUrl, files, service);
    const data = postgres.scratch('base');
    postgres.run('pg_basebackup', '-D', data, '--checkpoint=fast', `--dbname=${postgres.url}`);
    await stop(service.process);

    const copy = await startSystemPostgres(data);
    cleanups.push(() => copy.stop());
    await mkdir(join(folder, 'empty'));
    const again = await serve(copy.urlOf('sluice'), join(folder, 'empty'), key);
    work(copy.urlOf('sluice'), join(folder, 'empty'));
    expect(await jobEnded(again.url, key, underWay)).toMatchObject({
      status: 'failed',
      failure: { message: expect.stringContaining('file') },
    });
    // The lane goes on.
    const { job_id: next } = await upload(again.url, key, usersCsv(1_500, 'four'));
    expect(await jobEnded(again.url, key, next)).toMatchObject({
      status: 'completed',
      counts: { inserted: 500, updated: 1_000 },
    });
  });
});

interface Service {
  readonly process: Running;
  readonly url: string;
  readonly key: string;
}

async function start(): Promise<SystemPostgres> {
  const postgres = await startSystemPostgres();
  cleanups.push(() => postgres.stop());
  await postgres.query('postgres', 'create database sluice');
  return postgres;
}

/** `key`: one that was made before; else the first one. */
async function serve(databaseUrl: string, files: string, key?: string): Promise<Service> {
  const process = startCli(['serve'], { env: { DATABASE_URL: databaseUrl, STORAGE_URL: files } });
  const url = await waitFor('serve to be ready', () => /listens on (http:\S+)\./.exec(process.stdout)?.[1]);
  return { process, url, key: key ?? /slk_\w+/.exec(process.stdout)?.[0] ?? '' };
}

function work(databaseUrl: string, files: string): Running {
  return startCli(['work'], { env: { DATABASE_URL: databaseUrl, STORAGE_URL: files } });
}

async function stop(process: Running): Promise<void> {
  process.signal('SIGTERM');
  expect(await process.finished).toMatchObject({ code: 0 });
}

/** Loads 1 000 users; then accepts 3 000, the same among them, when nobody is there to work: a backup finds them waiting. */
async function loadOneAcceptAnother(databaseUrl: string, files: string, { url, key }: Service) {
  const worker = work(databaseUrl, files);
  const { job_id: done } = await upload(url, key, usersCsv(1_000));
  expect(await jobEnded(url, key, done)).toMatchObject({ status: 'completed' });
  await stop(worker);
  const { job_id: underWay } = await upload(url, key, usersCsv(3_000, 'two'), 'more.csv');
  return { done, underWay };
}
