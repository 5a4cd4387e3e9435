import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cleanUpAfter } from '../support/cleanups.ts';
import { createTestDatabase } from '../support/servers/postgres.ts';
import { runCli, temporaryFolder } from './cli.ts';

test('sluice delete requires --yes, deletes the ids of a list and of the command line, and reports the outcome of each', async () => {
  const folder = await temporaryFolder();
  const database = await createTestDatabase();
  cleanUpAfter('test', () => database.drop());
  const env = { DATABASE_URL: database.url, DATA_DIR: join(folder, 'data') };
  const sluice = (args: readonly string[], input?: string) =>
    runCli(args, { cwd: folder, env, ...(input !== undefined && { input }) });
  await writeFile(join(folder, 'users.csv'), 'user_id,company_id\na,acme\n b ,acme\n-c,acme\nd,acme\n');
  await writeFile(join(folder, 'ids.txt'), '\ufeff b \r\n\r\nnobody\n');
  const loaded = await sluice(['import', 'users.csv']);
  expect(loaded, loaded.stderr).toMatchObject({ code: 0 });

  const unconfirmed = await sluice(['delete', 'users', 'a']);
  expect(unconfirmed).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('--yes') });
  expect(await sluice(['delete', 'users', 'x'.repeat(257), '--yes'])).toMatchObject({ code: 2 });

  const users = await sluice(['delete', 'users', '--file', 'ids.txt', '--yes', '--json', 'a', '--', '-c']);
  expect(users, users.stderr).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(users.stdout)).toMatchObject({
    job: {
      type: 'delete_users',
      status: 'completed',
      counts: { requested: 4, deleted: 3, not_found: 1, pending: 0 },
    },
    outcomes: [
      { id: 'a', outcome: 'deleted' },
      { id: '-c', outcome: 'deleted' },
      { id: ' b ', outcome: 'deleted' },
      { id: 'nobody', outcome: 'not_found' },
    ],
  });
  const companies = await sluice(['delete', 'companies', '--file', '-', '--yes'], 'acme\n');
  expect(companies, companies.stderr).toMatchObject({ code: 0 });
  expect(companies.stdout).toMatch(/acme +deleted +0 +1\ncompanies: 1 deleted, 0 not found/);
});
