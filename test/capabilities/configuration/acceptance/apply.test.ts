import { expect, test } from 'vitest';
import { databaseUrl, runCli } from '../../../acceptance/cli.ts';
import { folderOf, writeFiles } from '../support/folder.ts';

test('the exit code of `sluice apply` separates changes, no changes and failures', async () => {
  const env = { DATABASE_URL: await databaseUrl() };
  const sluice = (...words: string[]) => runCli(words, { env });
  const rules = (unknown: string) => ({ 'shop.json': { rules: { users: { unknown } } } });
  const folder = await folderOf(rules('report'));
  expect(await sluice('apply', folder, '--dry-run')).toMatchObject({
    code: 1,
    stdout: '',
    stderr:
      'sluice: There is no environment shop. Create it with `sluice env create shop`, or add --create.\n',
  });
  expect(await sluice('apply', folder, '--dry-run', '--create')).toMatchObject({ code: 2 });
  expect(await sluice('apply', folder, '--create')).toMatchObject({
    code: 0,
    stdout: `shop (${folder}/shop.json)\n+ environment\n+ rules  users\n`,
    stderr: 'Applied 2 changes in 1 environment.\n',
  });
  expect(await sluice('apply', folder, '--dry-run')).toMatchObject({
    code: 0,
    stdout: `shop (${folder}/shop.json): no changes\n`,
  });
  await writeFiles(folder, rules('strip'));
  expect(await sluice('apply', folder, '--dry-run')).toMatchObject({
    code: 2,
    stdout: `shop (${folder}/shop.json)\n~ rules  users\n    unknown: "report" → "strip"\n`,
    stderr: 'Dry run: 1 change in 1 environment; nothing was written.\n',
  });
  await writeFiles(folder, rules('maybe'));
  expect(await sluice('apply', folder, '--dry-run')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/shop\.json:1:\d+: rules\.users\.unknown must be/),
  });
  await writeFiles(folder, { 'shop.json': { rules: {} } });
  expect(await sluice('apply', folder, '--prune')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^shop: - rules {2}users\nsluice: .* add --yes\.\n$/),
  });
  expect(await sluice('apply', folder, '--prune', '--yes')).toMatchObject({ code: 0 });
});
