import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { databaseUrl, runCli, temporaryFolder } from '../../../acceptance/cli.ts';
import { cleanUpAfter } from '../../../support/cleanups.ts';
import { mountSmallDisk } from '../../../support/servers/tmpfs.ts';

test('`sluice prune` exits with 1 and the reason if events could not be archived', async () => {
  const disk = await mountSmallDisk(64 * 1024);
  if (typeof disk === 'string') return;
  cleanUpAfter('test', disk.remove);
  const dataDir = await temporaryFolder();
  const database = { DATABASE_URL: await databaseUrl() };
  const line = (n: number) =>
    `track,u${n},opened,2020-01-01T00:00:00Z,${randomBytes(60).toString('base64')}\n`;
  const file = join(dataDir, 'events.csv');
  await writeFile(
    file,
    `event_type,user_id,event_name,inserted_at,blob\n${Array.from({ length: 3_000 }, (_, n) => line(n)).join('')}`,
  );
  expect(await runCli(['import', file, '--data-dir', dataDir], { env: database })).toMatchObject({ code: 0 });
  const env = { ...database, EVENT_RETENTION_DAYS: '30', LAKE_EVERY: '1h', STORAGE_URL: disk.path };
  expect(await runCli(['prune', '--data-dir', dataDir], { env })).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/could not be removed: 2020-01.*full|No space/i),
  });
  await disk.grow(64 * 1024 * 1024);
  expect(await runCli(['prune', '--data-dir', dataDir], { env })).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^events +3,000$[\s\S]*^archived events +3,000$/m),
  });
});
