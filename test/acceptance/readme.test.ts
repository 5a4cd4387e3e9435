import { expect, test } from 'vitest';
import { preparedDataDir, startService } from './cli.ts';
import { followPage, readPage, shellFolder, writeFiles } from './pages.ts';
import { call, type Job } from './service.ts';

/** In this order, as a reader may go from one to the next. */
const names = [
  'README.md',
  'docs/api.md',
  'docs/accountable.md',
  'docs/start.md',
  'docs/how-to/segment.md',
  'docs/how-to/hosted-analytics.md',
] as const;

test('the commands of the README, the API reference, the tutorials and the how-tos work as they stand, in their order, and are answered as they say', async () => {
  const pages = await Promise.all(names.map(readPage));
  // Its run of an export waits for a while, so the others are followed meanwhile.
  const warehouse = await readPage('docs/how-to/warehouse.md');
  // Both have a schedules file of their own, of the same name.
  const nightly = await readPage('docs/how-to/nightly-file.md');
  const dataDir = await preparedDataDir();
  const folder = await shellFolder();
  const settings = Object.assign({}, ...[...pages, nightly, warehouse].map((page) => page.settings));
  await writeFiles(warehouse, folder);
  const service = await startService(dataDir, settings, folder);
  const reader = {
    folder,
    url: service.url,
    key: service.key ?? '',
    env: { ...settings, DATA_DIR: dataDir },
  };
  const ask = async <T>(path: string) => (await (await call(service.url, service.key, path)).json()) as T;
  const followOthers = async () => {
    for (const page of pages) {
      expect(await followPage(page, reader)).toEqual([]);
      if (page.name === 'docs/accountable.md') await checkAccountable();
    }
  };
  const checkAccountable = async () => {
    const newest = await ask<readonly Job[]>('/v1/background_jobs?type=import&limit=4');
    const jobs = await Promise.all(newest.map(({ job_id }) => ask<Job>(`/v1/background_jobs/${job_id}`)));
    const mends = { rejected: 0, read: 1 };
    const counts = { read: 6, inserted: 1, updated: 1, superseded: 1, rejected: 0, amended: 3 };
    expect(jobs.map((job) => job.counts)).toMatchObject([mends, mends, mends, counts]);
  };
  const [exported] = await Promise.all([followPage(warehouse, reader), followOthers()]);
  expect(exported).toEqual([]);
  expect(await followPage(nightly, reader)).toEqual([]);
  const calls = pages.flatMap(({ commands }) => commands).filter(({ statuses }) => statuses.length > 0);
  expect(calls.length).toBeGreaterThan(80);
});
