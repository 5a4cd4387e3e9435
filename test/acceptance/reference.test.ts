import { expect, test } from 'vitest';
import { pageFiles } from '../../site/pages.ts';
import { databaseUrl, startService, temporaryFolder } from './cli.ts';
import { followPage, readPage, readReference, shellFolder, writeFiles } from './pages.ts';

// proves: docs-true
test('every command of the API reference is a request that its route accepts', async () => {
  const reference = await readReference(pageFiles.filter((page) => page.startsWith('docs/api/')));
  const loads = await readPage('docs/loads.md');
  const folder = await shellFolder();
  await writeFiles(loads, folder);
  // The example of a schedule in the API reference uses the variable SCHEDULE_PARTNER_TOKEN.
  const settings = {
    SCHEDULES_VARIABLES: 'default:SCHEDULE_PARTNER_TOKEN',
    DATABASE_URL: await databaseUrl(),
  };
  const dataDir = await temporaryFolder();
  const service = await startService(dataDir, settings, { cwd: folder });
  const env = { ...settings, DATA_DIR: dataDir };
  const reader = { folder, url: service.url, key: service.key ?? '', env };
  expect(reference.commands.length).toBeGreaterThan(70);
  expect(await followPage(reference, reader)).toEqual([]);
});
