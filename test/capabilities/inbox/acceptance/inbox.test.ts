import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { databaseUrl, runCli, startService, temporaryFolder } from '../../../acceptance/cli.ts';
import { concluded, drop } from '../support/inbox.ts';

test('workers of `sluice start` load the inbox, and `sluice api v1/inbox` lists it', async () => {
  const dataDir = await temporaryFolder();
  const inbox = await temporaryFolder();
  const env = { INBOX_DIR: inbox, INBOX_STABLE_MS: '200', DATABASE_URL: await databaseUrl() };
  const { url } = await startService(dataDir, env);
  const folder = join(inbox, 'default');
  await drop(join(folder, 'users.csv'), 'user_id,plan\nu1,pro\n');
  await drop(join(folder, 'companies', 'bad.csv'), 'nothing,of,use\n1,2,3\n');
  // The content of a file determines its format, regardless of the file name.
  await drop(join(folder, 'packed.csv.gz'), gzipSync('PK\x03\x04 whatever'));
  await drop(join(folder, 'logins.7z'), 'PK\x03\x04 whatever');
  await drop(join(folder, 'companies', 'new.ods'), 'PK\x03\x04 whatever');
  const [file] = await concluded(folder, 'users.csv');
  await concluded(folder, 'packed.csv.gz');
  await concluded(folder, 'companies/bad.csv');
  await mkdir(join(folder, 'users'), { recursive: true });
  await writeFile(join(folder, 'users', 'mapping.yaml.error'), 'wrong');
  await writeFile(join(folder, 'users', 'mapping.yaml'), 'wrong: true');
  await drop(join(folder, 'users', 'held.csv'), 'user_id\nu2\n');
  const { stdout } = await runCli(['api', 'v1/inbox', '--data-dir', dataDir], {
    env: { ...env, PUBLIC_URL: url },
  });
  const answer = JSON.parse(stdout) as { readonly recent: readonly { readonly name: string }[] };
  expect(answer).toMatchObject({
    waiting: 1,
    ignored: [
      { name: 'logins.7z', why: expect.stringContaining('files are taken by the names') },
      { name: 'companies/new.ods', why: expect.stringContaining('files are taken by the names') },
    ],
    held: ['users'],
  });
  expect(answer.recent.toSorted((a, b) => (a.name < b.name ? 1 : -1))).toMatchObject([
    { name: 'users.csv', outcome: 'done', job_id: file?.receipt.job_id, reasons: [] },
    {
      name: 'packed.csv.gz',
      outcome: 'failed',
      reasons: [{ message: expect.stringContaining('The ZIP archive is damaged') }],
    },
    { name: 'companies/bad.csv', outcome: 'failed', reasons: [{ error_code: 'unrecognised_columns' }] },
  ]);
});
